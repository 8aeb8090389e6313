//! Statuses on the wire: `grpc-status`, `grpc-message`, `grpc-status-details-bin`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::{HeaderMap, HeaderValue};
use prost::Message;
use tensorfleet_proto::distributed_runtime::GrpcPayloadContainer;
use tensorfleet_status::{Code, DERIVED_STATUS_URL, Result, Status, unavailable};

/// Texts are cut here: HTTP/2 peers limit the size of headers.
const MAX_MESSAGE: usize = 3072;
const CUT_MARK: &str = " ... [truncated]";

/// Reads base64 with or without padding; peers send both.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Adds the result of a call to its trailers.
pub(crate) fn write(headers: &mut HeaderMap, status: Option<&Status>) {
    let Some(status) = status else {
        headers.insert("grpc-status", HeaderValue::from_static("0"));
        return;
    };
    headers.insert("grpc-status", HeaderValue::from(status.code().number()));
    if let Ok(value) = HeaderValue::from_str(&percent_encode(&cut(status.message()))) {
        headers.insert("grpc-message", value);
    }
    let details = details(status);
    if !details.payloads.is_empty()
        && let Ok(value) = HeaderValue::from_str(&STANDARD_NO_PAD.encode(details.encode_to_vec()))
    {
        headers.insert("grpc-status-details-bin", value);
    }
}

/// What a status carries besides code and text.
pub(crate) fn details(status: &Status) -> GrpcPayloadContainer {
    let mut details = GrpcPayloadContainer::default();
    for payload in status.payloads() {
        details
            .payloads
            .insert(payload.url.clone(), payload.value.clone());
    }
    if status.is_derived() {
        details
            .payloads
            .insert(DERIVED_STATUS_URL.to_owned(), Default::default());
    }
    details
}

/// Puts back what [`details`] took out.
pub(crate) fn with_details(status: Status, details: GrpcPayloadContainer) -> Status {
    let payloads = details.payloads.into_iter();
    payloads.fold(status, |status, (url, value)| {
        status.with_payload(url, value)
    })
}

/// The result of a call from its trailers.
pub(crate) fn read(headers: &HeaderMap) -> Result<()> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let code = match text("grpc-status").map(str::parse::<i32>) {
        Some(Ok(0)) => return Ok(()),
        Some(Ok(number)) => Code::from_number(number),
        _ => {
            return Err(Status::new(
                Code::Unknown,
                "the answer has no gRPC status: the peer is not a gRPC server",
            ));
        }
    };
    let status = Status::new(
        code,
        percent_decode(text("grpc-message").unwrap_or_default()),
    );
    let details = text("grpc-status-details-bin")
        .and_then(|value| LENIENT.decode(value).ok())
        .and_then(|bytes| GrpcPayloadContainer::decode(bytes.as_slice()).ok());
    Err(with_details(status, details.unwrap_or_default()))
}

/// A failure of the connection or the stream below a call.
pub(crate) fn from_h2(error: &h2::Error) -> Status {
    match error.reason() {
        Some(h2::Reason::CANCEL) => Status::new(Code::Cancelled, "CANCELLED").derived(),
        Some(h2::Reason::ENHANCE_YOUR_CALM) => Status::new(
            Code::ResourceExhausted,
            "the peer refuses more calls: it has too many",
        ),
        _ => unavailable!("Socket closed ({error})"),
    }
}

fn cut(message: &str) -> std::borrow::Cow<'_, str> {
    if message.len() <= MAX_MESSAGE {
        return message.into();
    }
    let mut end = MAX_MESSAGE - CUT_MARK.len();
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{CUT_MARK}", &message[..end]).into()
}

fn percent_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if (b' '..=b'~').contains(&byte) && byte != b'%' {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn percent_decode(text: &str) -> String {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        let mut ahead = bytes.clone();
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        match (byte, digit(ahead.next()), digit(ahead.next())) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                bytes = ahead;
            }
            _ => out.push(byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(status: &Status) -> Status {
        let mut headers = HeaderMap::new();
        write(&mut headers, Some(status));
        read(&headers).unwrap_err()
    }

    #[test]
    fn statuses_survive_the_wire() {
        let status = Status::new(Code::Aborted, "100% of ünits\n\t [[{{node x}}]]")
            .with_payload("type.googleapis.com/x", vec![1u8, 2, 3])
            .derived();
        assert_eq!(round_trip(&status), status);
        let mut headers = HeaderMap::new();
        write(&mut headers, None);
        assert_eq!(read(&headers), Ok(()));
    }

    #[test]
    fn long_texts_are_cut_at_a_character() {
        let long = Status::new(Code::Internal, "ü".repeat(4000));
        let got = round_trip(&long);
        assert!(got.message().len() <= MAX_MESSAGE);
        assert!(got.message().ends_with(CUT_MARK));
    }

    #[test]
    fn odd_trailers_are_no_panic() {
        let mut headers = HeaderMap::new();
        assert_eq!(read(&headers).unwrap_err().code(), Code::Unknown);
        headers.insert("grpc-status", HeaderValue::from_static("99"));
        headers.insert("grpc-message", HeaderValue::from_static("%zz%4"));
        headers.insert("grpc-status-details-bin", HeaderValue::from_static("!!"));
        let status = read(&headers).unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::Unknown, "%zz%4"));
    }
}
