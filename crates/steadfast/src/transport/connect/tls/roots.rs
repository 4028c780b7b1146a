//! Which authorities' certificates are trusted.

use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

use super::config::Files;
use super::error::{Part, TlsConfigError, What};

/// Mozilla's, the platform's, and those of the files; or the files' alone.
pub(super) fn store(files: &Files, only_files: bool) -> Result<RootCertStore, TlsConfigError> {
    let mut roots = RootCertStore::empty();
    if !only_files {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    if let Some(platform) = &files.platform {
        // A platform's store often holds a few that no library reads; those that it reads are enough.
        let (added, ignored) = roots.add_parsable_certificates(platform.iter().cloned());
        tracing::debug!(added, ignored, "platform root certificates");
        if added == 0 {
            return Err(TlsConfigError::new(What::NoPlatformRoots));
        }
    }
    for file in &files.roots {
        let mut count = 0;
        for certificate in CertificateDer::pem_slice_iter(&file.bytes) {
            count += 1;
            let certificate = certificate.map_err(|error| TlsConfigError::not_pem(Part::Roots, &file.path, &error))?;
            let unusable =
                |error| TlsConfigError::because(What::NotACertificate(Part::Roots, file.path.clone(), count), error);
            roots.add(certificate).map_err(unusable)?;
        }
        if count == 0 {
            return Err(TlsConfigError::new(What::NoCertificate(file.path.clone())));
        }
    }
    Ok(roots)
}
