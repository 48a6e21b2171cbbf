//! The list of shapes: the beginnings of keys, and the text that follows.

/// The text that follows the beginning of a key.
#[derive(Debug, Clone, Copy)]
pub(super) enum KeyRest {
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
pub(super) const SHAPES: &[(&str, KeyRest)] = &[
    // OpenAI, Anthropic, OpenRouter, DeepSeek; Groq, xAI, Perplexity, Replicate, Hugging Face.
    ("sk-", KeyRest::Random(20)),
    ("gsk_", KeyRest::Plain(40)),
    ("xai-", KeyRest::Random(40)),
    ("pplx-", KeyRest::Random(40)),
    ("r8_", KeyRest::Plain(37)),
    ("hf_", KeyRest::Plain(30)),
    // Stripe, Twilio, SendGrid, Shopify.
    ("sk_live_", KeyRest::Plain(16)),
    ("rk_live_", KeyRest::Plain(16)),
    ("sk_test_", KeyRest::Plain(16)),
    ("rk_test_", KeyRest::Plain(16)),
    ("whsec_", KeyRest::Base64(32)),
    ("SK", KeyRest::Hex(32)),
    ("SG.", KeyRest::Dotted(22, 43)),
    ("shpat_", KeyRest::Hex(32)),
    ("shpca_", KeyRest::Hex(32)),
    ("shppa_", KeyRest::Hex(32)),
    ("shpss_", KeyRest::Hex(32)),
    // GitHub, GitLab, registries.
    ("ghp_", KeyRest::Plain(30)),
    ("gho_", KeyRest::Plain(30)),
    ("ghu_", KeyRest::Plain(30)),
    ("ghs_", KeyRest::Plain(30)),
    ("ghr_", KeyRest::Plain(30)),
    ("github_pat_", KeyRest::Random(40)),
    ("glpat-", KeyRest::Random(20)),
    ("gldt-", KeyRest::Random(20)),
    ("glrt-", KeyRest::Random(20)),
    ("glptt-", KeyRest::Random(20)),
    ("npm_", KeyRest::Plain(36)),
    ("pypi-", KeyRest::Random(60)),
    ("dckr_pat_", KeyRest::Random(20)),
    // Clouds.
    ("AKIA", KeyRest::AwsId),
    ("ASIA", KeyRest::AwsId),
    ("aws_secret_access_key", KeyRest::AwsSecret),
    ("AWS_SECRET_ACCESS_KEY", KeyRest::AwsSecret),
    ("SecretAccessKey", KeyRest::AwsSecret),
    ("secretAccessKey", KeyRest::AwsSecret),
    ("AIza", KeyRest::Random(35)),
    ("ya29.", KeyRest::Random(40)),
    ("GOCSPX-", KeyRest::Random(24)),
    ("AccountKey=", KeyRest::Base64(40)),
    ("SharedAccessKey=", KeyRest::Base64(40)),
    ("dop_v1_", KeyRest::Hex(64)),
    ("doo_v1_", KeyRest::Hex(64)),
    ("dor_v1_", KeyRest::Hex(64)),
    ("dapi", KeyRest::Hex(32)),
    // Vaults, monitors, others.
    ("hvs.", KeyRest::Random(24)),
    ("hvb.", KeyRest::Random(24)),
    ("dp.pt.", KeyRest::Plain(40)),
    ("sntrys_", KeyRest::Random(40)),
    ("sntryu_", KeyRest::Plain(40)),
    ("glsa_", KeyRest::Random(32)),
    ("lin_api_", KeyRest::Plain(40)),
    ("ntn_", KeyRest::Plain(40)),
    ("figd_", KeyRest::Random(40)),
    ("AGE-SECRET-KEY-1", KeyRest::Capitals(58)),
    // Chats.
    ("xoxa-", KeyRest::Random(20)),
    ("xoxb-", KeyRest::Random(20)),
    ("xoxe-", KeyRest::Random(20)),
    ("xoxp-", KeyRest::Random(20)),
    ("xoxr-", KeyRest::Random(20)),
    ("xoxs-", KeyRest::Random(20)),
    ("xapp-", KeyRest::Random(20)),
    ("https://hooks.slack.com/", KeyRest::SecretPath),
    ("https://discord.com/api/webhooks/", KeyRest::SecretPath),
    ("https://discordapp.com/api/webhooks/", KeyRest::SecretPath),
    (":AA", KeyRest::Bot),
    // Any.
    ("://", KeyRest::UserInfo),
    ("eyJ", KeyRest::WebToken),
    ("-----BEGIN ", KeyRest::Armour),
    ("-----END ", KeyRest::ArmourEnd),
];
