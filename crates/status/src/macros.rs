//! One constructor macro per code: `invalid_argument!("rank {rank} is odd")` is a formatted [`Status`](crate::Status).

/// A formatted [`Status`](crate::Status) with [`Code::Cancelled`](crate::Code::Cancelled).
#[macro_export]
macro_rules! cancelled {
    ($($arg:tt)+) => { $crate::Status::new($crate::Code::Cancelled, format!($($arg)+)) };
}

/// A formatted [`Status`](crate::Status) with [`Code::Unknown`](crate::Code::Unknown).
#[macro_export]
macro_rules! unknown {
    ($($arg:tt)+) => { $crate::Status::new($crate::Code::Unknown, format!($($arg)+)) };
}

/// A formatted [`Status`](crate::Status) with [`Code::InvalidArgument`](crate::Code::InvalidArgument).
#[macro_export]
macro_rules! invalid_argument {
    ($($arg:tt)+) => { $crate::Status::new($crate::Code::InvalidArgument, format!($($arg)+)) };
}

/// A formatted [`Status`](crate::Status) with [`Code::DeadlineExceeded`](crate::Code::DeadlineExceeded).
#[macro_export]
macro_rules! deadline_exceeded {
    ($($arg:tt)+) => { $crate::Status::new($crate::Code::DeadlineExceeded, format!($($arg)+)) };
}

/// A formatted [`Status`](crate::Status) with [`Code::NotFound`](crate::Code::NotFound).
#[macro_export]
macro_rules! not_found {
    ($($arg:tt)+) => { $crate::Status::new($crate::Code::NotFound, format!($($arg)+)) };
}

/// A formatted [`Status`](crate::Status) with [`Code::AlreadyExists`](crate::Code::AlreadyExists).
#[macro_export]
macro_rules! already_exists {
    ($($arg:tt)+) => { $crate::Status::new($crate::Code::AlreadyExists, format!($($arg)+)) };
}

/// A formatted [`Status`](crate::Status) with [`Code::PermissionDenied`](crate::Code::PermissionDenied).
#[macro_export]
macro_rules! permission_denied {
    ($($arg:tt)+) => { $crate::Status::new($crate::Code::PermissionDenied, format!($($arg)+)) };
}

/// A formatted [`Status`](crate::Status) with [`Code::ResourceExhausted`](crate::Code::ResourceExhausted).
#[macro_export]
macro_rules! resource_exhausted {
    ($($arg:tt)+) => { $crate::Status::new($crate::Code::ResourceExhausted, format!($($arg)+)) };
}

/// A formatted [`Status`](crate::Status) with [`Code::FailedPrecondition`](crate::Code::FailedPrecondition).
#[macro_export]
macro_rules! failed_precondition {
    ($($arg:tt)+) => { $crate::Status::new($crate::Code::FailedPrecondition, format!($($arg)+)) };
}

/// A formatted [`Status`](crate::Status) with [`Code::Aborted`](crate::Code::Aborted).
#[macro_export]
macro_rules! aborted {
    ($($arg:tt)+) => { $crate::Status::new($crate::Code::Aborted, format!($($arg)+)) };
}

/// A formatted [`Status`](crate::Status) with [`Code::OutOfRange`](crate::Code::OutOfRange).
#[macro_export]
macro_rules! out_of_range {
    ($($arg:tt)+) => { $crate::Status::new($crate::Code::OutOfRange, format!($($arg)+)) };
}

/// A formatted [`Status`](crate::Status) with [`Code::Unimplemented`](crate::Code::Unimplemented).
#[macro_export]
macro_rules! unimplemented {
    ($($arg:tt)+) => { $crate::Status::new($crate::Code::Unimplemented, format!($($arg)+)) };
}

/// A formatted [`Status`](crate::Status) with [`Code::Internal`](crate::Code::Internal).
#[macro_export]
macro_rules! internal {
    ($($arg:tt)+) => { $crate::Status::new($crate::Code::Internal, format!($($arg)+)) };
}

/// A formatted [`Status`](crate::Status) with [`Code::Unavailable`](crate::Code::Unavailable).
#[macro_export]
macro_rules! unavailable {
    ($($arg:tt)+) => { $crate::Status::new($crate::Code::Unavailable, format!($($arg)+)) };
}

/// A formatted [`Status`](crate::Status) with [`Code::DataLoss`](crate::Code::DataLoss).
#[macro_export]
macro_rules! data_loss {
    ($($arg:tt)+) => { $crate::Status::new($crate::Code::DataLoss, format!($($arg)+)) };
}

/// Returns early with an error [`Status`](crate::Status) unless the condition holds:
/// `ensure!(n > 0, invalid_argument, "n must be positive, got {n}")`.
#[macro_export]
macro_rules! ensure {
    ($cond:expr, $code:ident, $($arg:tt)+) => {
        if !$cond {
            return Err($crate::$code!($($arg)+));
        }
    };
}
