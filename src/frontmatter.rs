//! The YAML head of a Markdown file, between two lines of three dashes.
