//! Logging in to a server by OAuth 2.1, as the protocol says: what protects the server is discovered, the client is
//! registered, and a person allows it in a browser (with PKCE, a state and a check of the issuer, which are rmcp's). The
//! tokens are kept in a file that this user alone can read, and refreshed.

use std::collections::BTreeSet;
use std::fs;
use std::future::Future;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationRequest, CredentialStore, OAuthClientConfig, OAuthState,
    StoredCredentials, WWWAuthenticateParams,
};

use crate::base::digest::hash_sha256;
use crate::base::text;
use crate::config::McpOauth;
use crate::files::private::make_private_dir;
use crate::files::regular::{Links, read_bytes, replace_file};
use crate::safety::net;

/// The longest file of tokens.
const LONGEST: u64 = 1024 * 1024;
/// An address to come back to, which no refresh uses.
const REFRESHED_TO: &str = "http://127.0.0.1/callback";

/// The file of the tokens for an address. A file beside it has the scopes that its server missed in them.
#[derive(Debug, Clone)]
pub struct TokenFile(PathBuf);

/// The server of a login.
#[derive(Debug)]
pub struct LoginServer<'s> {
    pub url: &'s str,
    pub tokens: &'s TokenFile,
    pub oauth: Option<&'s McpOauth>,
}

/// A login that waits for a person.
pub struct McpLogin {
    state: OAuthState,
}

type StoreFuture<'f, T> = Pin<Box<dyn Future<Output = Result<T, AuthError>> + Send + 'f>>;

impl TokenFile {
    /// The file in `dir`, which need not exist.
    pub fn new(dir: &Path, url: &str) -> Self {
        Self(dir.join(format!("{}.json", hash_sha256([url.as_bytes()]))))
    }

    pub fn exists(&self) -> bool {
        self.0.exists()
    }

    /// Removes the tokens; returns false if there are none.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn remove(&self) -> std::io::Result<bool> {
        self.forget_missed();
        match fs::remove_file(&self.0) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Remembers the scopes that a server missed, as it said in a header, so that the next login asks for them. Returns them.
    pub fn miss_scopes(&self, challenge: &str, url: &str) -> Option<String> {
        let asked = WWWAuthenticateParams::parse(challenge, &net::parse_url(url).ok()?);
        let scopes = asked.scope.filter(|_| asked.error.as_deref() == Some("insufficient_scope"))?;
        // Where that fails, the login asks for those of the first one.
        let _ = replace_file(&self.missed(), scopes.as_bytes());
        Some(text::one_line(&scopes, 200))
    }

    /// The file of the scopes that were missed.
    fn missed(&self) -> PathBuf {
        self.0.with_extension("missed")
    }

    fn forget_missed(&self) {
        let _ = fs::remove_file(self.missed());
    }

    /// The scopes that were granted and those that were missed since; none if none were missed.
    fn widen_scopes(&self) -> Vec<String> {
        let missed = read_bytes(&self.missed(), Links::Refuse, LONGEST).ok().flatten().unwrap_or_default();
        let granted = self.read().ok().flatten().map(|stored| stored.granted_scopes).unwrap_or_default();
        let mut scopes: Vec<String> =
            String::from_utf8_lossy(&missed).split_whitespace().map(str::to_owned).collect();
        if !scopes.is_empty() {
            scopes.splice(0..0, granted);
            let mut seen = BTreeSet::new();
            scopes.retain(|scope| seen.insert(scope.clone()));
        }
        scopes
    }

    fn read(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let bytes = read_bytes(&self.0, Links::Refuse, LONGEST).map_err(AuthError::CredentialStoreError)?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    fn write(&self, credentials: &StoredCredentials) -> Result<(), AuthError> {
        let failed = |error: std::io::Error| AuthError::CredentialStoreError(error.to_string());
        let bytes = serde_json::to_vec(credentials).map_err(std::io::Error::other).map_err(failed)?;
        self.0.parent().map_or(Ok(()), make_private_dir).map_err(failed)?;
        replace_file(&self.0, &bytes).map_err(failed)?;
        self.forget_missed();
        Ok(())
    }
}

impl CredentialStore for TokenFile {
    fn load<'s, 'f>(&'s self) -> StoreFuture<'f, Option<StoredCredentials>>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(async { self.read() })
    }

    fn save<'s, 'f>(&'s self, credentials: StoredCredentials) -> StoreFuture<'f, ()>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(async move { self.write(&credentials) })
    }

    fn clear<'s, 'f>(&'s self) -> StoreFuture<'f, ()>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(async {
            self.remove().map(drop).map_err(|error| AuthError::CredentialStoreError(error.to_string()))
        })
    }
}

impl McpLogin {
    /// Begins a login; returns the address that a person opens as well. The browser comes back to `redirect`. `challenge` is
    /// what the server said of who may use it.
    ///
    /// # Errors
    /// The end of a sentence about the server.
    pub(super) async fn begin(
        server: &LoginServer<'_>,
        redirect: &str,
        challenge: Option<String>,
    ) -> Result<(Self, String), String> {
        let manager = open_manager(server.url, server.tokens).await?;
        let mut state = OAuthState::Unauthorized(manager);
        let mut request =
            AuthorizationRequest::new(redirect).with_client_name("agent").with_initial_scope_selection();
        request.challenge = challenge;
        request.scopes = server.tokens.widen_scopes();
        if let Some(oauth) = server.oauth {
            request.client_id.clone_from(&oauth.client_id);
            request.client_secret = oauth.client_secret.as_ref().map(|secret| secret.reveal().to_owned());
            request.client_metadata_url.clone_from(&oauth.client_metadata_url);
        }
        state.start_authorization(request).await.map_err(|error| explain(&error))?;
        let address = state.get_authorization_url().await.map_err(|error| explain(&error))?;
        Ok((Self { state }, address))
    }

    /// Ends a login with the address that the browser came back to. The tokens are kept.
    ///
    /// # Errors
    /// The end of a sentence about the server.
    pub async fn finish(mut self, address: &str) -> Result<(), String> {
        self.state.handle_callback_url(address).await.map_err(|error| explain(&error))
    }
}

/// The tokens of an earlier login, ready to be sent; `None` if there are none that this server still takes.
///
/// # Errors
/// The end of a sentence about the server.
pub(super) async fn find_authorization(server: &LoginServer<'_>) -> Result<Option<AuthorizationManager>, String> {
    if !server.tokens.exists() {
        return Ok(None);
    }
    let mut manager = open_manager(server.url, server.tokens).await?;
    let is_ready = manager.initialize_from_store().await.map_err(|error| explain(&error))?;
    // Its tokens are refreshed with the secret, which is not kept beside them.
    if let Some(McpOauth { client_id: Some(id), client_secret: Some(secret), .. }) =
        server.oauth.filter(|_| is_ready)
    {
        let client = OAuthClientConfig::new(id, REFRESHED_TO).with_client_secret(secret.reveal());
        manager.configure_client(client).map_err(|error| explain(&error))?;
    }
    Ok(Some(manager).filter(|_| is_ready))
}

async fn open_manager(url: &str, tokens: &TokenFile) -> Result<AuthorizationManager, String> {
    let mut manager = AuthorizationManager::new(url).await.map_err(|error| explain(&error))?;
    manager.set_credential_store(tokens.clone());
    Ok(manager)
}

/// Whole: who shows it masks it, then cuts it.
fn explain(error: &AuthError) -> String {
    format!("does not let us log in: {error}")
}
