//! Image ops: resizing, cropping, colours, boxes, patches, and the formats of image files.

mod adjust;
mod bilinear;
mod bmp;
mod color;
mod combined;
mod crop;
mod crop_grad;
mod decode;
mod distorted;
mod draw;
mod encode;
mod gif_file;
mod glimpse;
mod jpeg;
mod nearest;
mod patches;
mod picture;
pub(crate) mod png_file;
mod projective;
pub(crate) mod resize;
mod scale;
mod select_boxes;
mod suppression;

use crate::Family;

pub(crate) static FAMILY: Family = Family {
    name: "image",
    ops: &[&combined::OP],
    tables: &[
        &adjust::OPS,
        &bilinear::OPS,
        &color::OPS,
        &crop::OPS,
        &crop_grad::OPS,
        &decode::OPS,
        &distorted::OPS,
        &draw::OPS,
        &encode::OPS,
        &glimpse::OPS,
        &nearest::OPS,
        &patches::OPS,
        &projective::OPS,
        &scale::OPS,
        &suppression::OPS,
    ],
};
