//! Failure causes of TLS sessions.

use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible};

use crate::trusted;

/// Returns the name of a failure cause, from a fixed set: peers cannot add names.
pub(crate) fn of(error: &Error) -> &'static str {
    match error {
        Error::AlertReceived(alert) => received(*alert),
        Error::InvalidCertificate(error) => certificate(error),
        Error::PeerIncompatible(error) => incompatible(error),
        Error::InvalidMessage(_) => "peer's message is not TLS",
        Error::InappropriateMessage { .. } | Error::InappropriateHandshakeMessage { .. } => {
            "unexpected TLS message"
        }
        Error::PeerMisbehaved(_) => "peer misbehaved",
        Error::PeerSentOversizedRecord => "peer's record is too long",
        Error::DecryptError => "peer's record does not decrypt",
        Error::NoApplicationProtocol => "no ALPN protocol in common",
        Error::NoCertificatesPresented => "peer has no certificate",
        _ => "internal error",
    }
}

/// Names of received alerts (RFC 8446 section 6, RFC 5246 section 7.2).
fn received(alert: AlertDescription) -> &'static str {
    use AlertDescription as Alert;
    match alert {
        Alert::CloseNotify => "received alert close_notify",
        Alert::UnexpectedMessage => "received alert unexpected_message",
        Alert::BadRecordMac => "received alert bad_record_mac",
        Alert::RecordOverflow => "received alert record_overflow",
        Alert::HandshakeFailure => "received alert handshake_failure",
        Alert::BadCertificate => "received alert bad_certificate",
        Alert::UnsupportedCertificate => "received alert unsupported_certificate",
        Alert::CertificateRevoked => "received alert certificate_revoked",
        Alert::CertificateExpired => "received alert certificate_expired",
        Alert::CertificateUnknown => "received alert certificate_unknown",
        Alert::IllegalParameter => "received alert illegal_parameter",
        Alert::UnknownCA => "received alert unknown_ca",
        Alert::AccessDenied => "received alert access_denied",
        Alert::DecodeError => "received alert decode_error",
        Alert::DecryptError => "received alert decrypt_error",
        Alert::ProtocolVersion => "received alert protocol_version",
        Alert::InsufficientSecurity => "received alert insufficient_security",
        Alert::InternalError => "received alert internal_error",
        Alert::InappropriateFallback => "received alert inappropriate_fallback",
        Alert::UserCanceled => "received alert user_canceled",
        Alert::MissingExtension => "received alert missing_extension",
        Alert::UnsupportedExtension => "received alert unsupported_extension",
        Alert::UnrecognisedName => "received alert unrecognized_name",
        Alert::CertificateRequired => "received alert certificate_required",
        Alert::NoApplicationProtocol => "received alert no_application_protocol",
        _ => "received another alert",
    }
}

fn certificate(error: &CertificateError) -> &'static str {
    use CertificateError as Certificate;
    match error {
        Certificate::BadEncoding => "certificate cannot be read",
        Certificate::Expired | Certificate::ExpiredContext { .. } => "certificate has expired",
        Certificate::NotValidYet | Certificate::NotValidYetContext { .. } => {
            "certificate is not valid yet"
        }
        Certificate::Revoked => "certificate is revoked",
        Certificate::UnknownIssuer => "certificate of an unknown issuer",
        Certificate::BadSignature => "certificate's signature is wrong",
        Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => {
            "certificate is for another name"
        }
        error if trusted::is_ca_used_as_end_entity(error) => "untrusted CA certificate",
        _ => "certificate is not accepted",
    }
}

fn incompatible(error: &PeerIncompatible) -> &'static str {
    match error {
        PeerIncompatible::NoCipherSuitesInCommon => "no cipher suite in common",
        PeerIncompatible::NoKxGroupsInCommon => "no key exchange group in common",
        PeerIncompatible::NoSignatureSchemesInCommon
        | PeerIncompatible::NoCertificateRequestSignatureSchemesInCommon => {
            "no signature scheme in common"
        }
        PeerIncompatible::ServerDoesNotSupportTls12Or13
        | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
        | PeerIncompatible::SupportedVersionsExtensionRequired
        | PeerIncompatible::Tls12NotOffered
        | PeerIncompatible::Tls12NotOfferedOrEnabled => "no version in common",
        _ => "peer is incompatible",
    }
}
