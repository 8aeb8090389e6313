//! Names of ops and attributes as Rust writes them.

/// `MatMul` as `mat_mul`, `Conv2DBackpropInput` as `conv2d_backprop_input`, `TopKV2` as `top_k_v2`.
pub(super) fn snake(name: &str) -> String {
    let (name, version) = split_version(name);
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (index, &c) in chars.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|before| chars.get(before));
        let lower_follows = chars.get(index + 1).is_some_and(char::is_ascii_lowercase);
        let begins_word = c.is_ascii_uppercase()
            && before.is_some_and(|before| {
                before.is_ascii_lowercase() || (lower_follows && before.is_ascii_alphanumeric())
            });
        if begins_word {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    if !version.is_empty() {
        out.push('_');
        out.push_str(&version.to_ascii_lowercase());
    }
    keyword_safe(out)
}

/// `TopKV2` as `TopK` and `V2`.
fn split_version(name: &str) -> (&str, &str) {
    let digits = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match digits.strip_suffix('V') {
        Some(base) if digits.len() < name.len() && !base.is_empty() => name.split_at(base.len()),
        _ => (name, ""),
    }
}

/// A word of the language gets an underscore.
fn keyword_safe(name: String) -> String {
    const KEYWORDS: &[&str] = &[
        "as", "box", "const", "continue", "else", "enum", "fn", "for", "if", "impl", "in", "let",
        "loop", "match", "mod", "move", "mut", "pub", "ref", "return", "self", "static", "struct",
        "super", "trait", "type", "use", "where", "while", "abstract", "final", "yield", "try",
    ];
    if KEYWORDS.contains(&name.as_str()) {
        return name + "_";
    }
    name
}

#[cfg(test)]
mod tests {
    use super::snake;

    #[test]
    fn op_names_become_function_names() {
        let names = [
            ("MatMul", "mat_mul"),
            ("Conv2DBackpropInput", "conv2d_backprop_input"),
            ("TopKV2", "top_k_v2"),
            ("AccumulateNV2", "accumulate_n_v2"),
            ("L2Loss", "l2_loss"),
            ("FFT2D", "fft2d"),
            ("FIFOQueueV2", "fifo_queue_v2"),
            ("Atan2", "atan2"),
            ("BesselI0e", "bessel_i0e"),
            ("SparseSegmentSqrtNGrad", "sparse_segment_sqrt_n_grad"),
            ("Where", "where_"),
            ("DstT", "dst_t"),
            ("T", "t"),
            ("transpose_a", "transpose_a"),
        ];
        for (name, expected) in names {
            assert_eq!(snake(name), expected);
        }
    }
}
