//! The one HTTP client: made once, when it is first needed, and shared by every request.
