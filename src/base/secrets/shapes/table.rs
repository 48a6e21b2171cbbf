//! The list of shapes: the beginnings of keys, and the text that follows.

/// The text that follows the beginning of a key.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rest {
    /// This many letters and digits at least.
    Plain(usize),
    /// Exactly this many capitals and digits.
    Capitals(usize),
    /// Exactly this many digits of base 16, in lower case.
    Hex(usize),
    /// This many letters, digits, `-` and `_` at least, and among them one run of letters and digits that no word
    /// has: 16 or more, of both kinds.
    Random(usize),
    /// The id of an AWS key, which its secret may follow.
    AwsId,
    /// The secret of an AWS key, after its name.
    AwsSecret,
    /// Base 64 of at least this many characters, after its name.
    Base64(usize),
    /// `ID.SECRET`, of these sizes.
    Dotted(usize, usize),
    /// The path of an address, which alone permits writing there.
    SecretPath,
    /// The token of a bot, after its digits.
    Bot,
    /// `user:password@`, whose password is secret.
    UserInfo,
    /// `HEADER.PAYLOAD.SIGNATURE`, whose first two parts are JSON in base 64.
    WebToken,
    /// Armoured text up to its end.
    Armour,
    /// The end of armoured text whose beginning was cut off, with the text before it.
    ArmourEnd,
}

/// Beginning → rest.
pub(super) const SHAPES: &[(&str, Rest)] = &[
    // OpenAI, Anthropic, OpenRouter, DeepSeek; Groq, xAI, Perplexity, Replicate, Hugging Face.
    ("sk-", Rest::Random(20)),
    ("gsk_", Rest::Plain(40)),
    ("xai-", Rest::Random(40)),
    ("pplx-", Rest::Random(40)),
    ("r8_", Rest::Plain(37)),
    ("hf_", Rest::Plain(30)),
    // Stripe, Twilio, SendGrid, Shopify.
    ("sk_live_", Rest::Plain(16)),
    ("rk_live_", Rest::Plain(16)),
    ("sk_test_", Rest::Plain(16)),
    ("rk_test_", Rest::Plain(16)),
    ("whsec_", Rest::Base64(32)),
    ("SK", Rest::Hex(32)),
    ("SG.", Rest::Dotted(22, 43)),
    ("shpat_", Rest::Hex(32)),
    ("shpca_", Rest::Hex(32)),
    ("shppa_", Rest::Hex(32)),
    ("shpss_", Rest::Hex(32)),
    // GitHub, GitLab, registries.
    ("ghp_", Rest::Plain(30)),
    ("gho_", Rest::Plain(30)),
    ("ghu_", Rest::Plain(30)),
    ("ghs_", Rest::Plain(30)),
    ("ghr_", Rest::Plain(30)),
    ("github_pat_", Rest::Random(40)),
    ("glpat-", Rest::Random(20)),
    ("gldt-", Rest::Random(20)),
    ("glrt-", Rest::Random(20)),
    ("glptt-", Rest::Random(20)),
    ("npm_", Rest::Plain(36)),
    ("pypi-", Rest::Random(60)),
    ("dckr_pat_", Rest::Random(20)),
    // Clouds.
    ("AKIA", Rest::AwsId),
    ("ASIA", Rest::AwsId),
    ("aws_secret_access_key", Rest::AwsSecret),
    ("AWS_SECRET_ACCESS_KEY", Rest::AwsSecret),
    ("SecretAccessKey", Rest::AwsSecret),
    ("secretAccessKey", Rest::AwsSecret),
    ("AIza", Rest::Random(35)),
    ("ya29.", Rest::Random(40)),
    ("GOCSPX-", Rest::Random(24)),
    ("AccountKey=", Rest::Base64(40)),
    ("SharedAccessKey=", Rest::Base64(40)),
    ("dop_v1_", Rest::Hex(64)),
    ("doo_v1_", Rest::Hex(64)),
    ("dor_v1_", Rest::Hex(64)),
    ("dapi", Rest::Hex(32)),
    // Vaults, monitors, others.
    ("hvs.", Rest::Random(24)),
    ("hvb.", Rest::Random(24)),
    ("dp.pt.", Rest::Plain(40)),
    ("sntrys_", Rest::Random(40)),
    ("sntryu_", Rest::Plain(40)),
    ("glsa_", Rest::Random(32)),
    ("lin_api_", Rest::Plain(40)),
    ("ntn_", Rest::Plain(40)),
    ("figd_", Rest::Random(40)),
    ("AGE-SECRET-KEY-1", Rest::Capitals(58)),
    // Chats.
    ("xoxa-", Rest::Random(20)),
    ("xoxb-", Rest::Random(20)),
    ("xoxe-", Rest::Random(20)),
    ("xoxp-", Rest::Random(20)),
    ("xoxr-", Rest::Random(20)),
    ("xoxs-", Rest::Random(20)),
    ("xapp-", Rest::Random(20)),
    ("https://hooks.slack.com/", Rest::SecretPath),
    ("https://discord.com/api/webhooks/", Rest::SecretPath),
    ("https://discordapp.com/api/webhooks/", Rest::SecretPath),
    (":AA", Rest::Bot),
    // Any.
    ("://", Rest::UserInfo),
    ("eyJ", Rest::WebToken),
    ("-----BEGIN ", Rest::Armour),
    ("-----END ", Rest::ArmourEnd),
];
