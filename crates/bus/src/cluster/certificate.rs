//! The certificate of the server, and of the authority that its clients trust.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use crate::BusError;
use crate::subject::Site;

/// Most names of a server.
const NAMES_MAX: usize = 64;

/// Certificates and the key of a server, in PEM. The key of the authority is not kept: nobody can
/// make another server that the clients trust.
#[derive(Clone, Debug)]
pub struct Certificates {
    /// Certificate of the authority.
    pub authority: String,
    /// Certificate of the server.
    pub server: String,
    /// Private key of the server.
    pub server_key: String,
}

/// Creates the certificates (ECDSA, P-256) of a server with host names and addresses. It is valid
/// for `localhost` and the loopback addresses too.
///
/// # Errors
/// A name is no host name or address.
pub fn certificates(site: &Site, names: &[String]) -> Result<Certificates, BusError> {
    let failed = |error: rcgen::Error| {
        BusError::invalid(format!("certificate for {}", names.join(", ")), error.to_string())
    };
    if names.len() > NAMES_MAX {
        let reason = format!("{} names; at most {NAMES_MAX}", names.len());
        return Err(BusError::invalid("certificate", reason));
    }
    let local = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let local = local.into_iter().filter(|name| !names.contains(name));
    let all: Vec<String> = names.iter().cloned().chain(local).collect();

    let mut authority = CertificateParams::new(Vec::new()).map_err(failed)?;
    let name = format!("Wirestorm bus of {}", site.name());
    authority.distinguished_name.push(DnType::CommonName, name);
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority_key = KeyPair::generate().map_err(failed)?;
    let authority_certificate = authority.self_signed(&authority_key).map_err(failed)?;
    let issuer = Issuer::new(authority, authority_key);

    let mut server = CertificateParams::new(all).map_err(failed)?;
    let name = names.first().map_or("localhost", String::as_str);
    server.distinguished_name.push(DnType::CommonName, name);
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.use_authority_key_identifier_extension = true;
    let server_key = KeyPair::generate().map_err(failed)?;
    let server_certificate = server.signed_by(&server_key, &issuer).map_err(failed)?;
    Ok(Certificates {
        authority: authority_certificate.pem(),
        server: server_certificate.pem(),
        server_key: server_key.serialize_pem(),
    })
}
