//! A model whose replies are recorded as they come.

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::{ExchangeEnd, PieceKind, RecordLine, RecordedExchange, RecordedReply, Recorder, ReplyPiece};
use crate::model::neutral::write_neutral;
use crate::model::{Allowance, ChatModel, Delta, ModelError, ModelInfo, ModelRequest, ReplyStream, TakenTokens};

pub(super) struct RecordedModel {
    model: Arc<dyn ChatModel>,
    recorder: Arc<Recorder>,
}

impl RecordedModel {
    pub fn new(model: Arc<dyn ChatModel>, recorder: Arc<Recorder>) -> Self {
        Self { model, recorder }
    }
}

/// A reply that comes, and what came of it.
struct RecordedStream {
    reply: Box<dyn ReplyStream>,
    recorder: Arc<Recorder>,
    began: Instant,
    exchange: Option<(Value, Vec<ReplyPiece>)>,
}

fn count_millis(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

fn failed(error: &ModelError, taken: Option<TakenTokens>) -> ExchangeEnd {
    ExchangeEnd::Failed { kind: error.kind, status: error.status, message: error.message.clone(), taken }
}

impl Recorder {
    /// Writes an exchange; what goes wrong is said once, as a notice of the reply.
    fn keep(&self, request: Value, pieces: Vec<ReplyPiece>, end: ExchangeEnd) -> Result<(), String> {
        self.write(&RecordLine::Request(RecordedExchange { request, pieces, end }))
            .map_err(|error| format!("--record {}: {error}", self.path.display()))
    }
}

impl ChatModel for RecordedModel {
    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    fn ask<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<Box<dyn ReplyStream>, ModelError>> {
        Box::pin(async move {
            let (began, asked) = (Instant::now(), write_neutral(&self.model.info().id, &request));
            match self.model.ask(request).await {
                Ok(reply) => Ok(Box::new(RecordedStream {
                    reply,
                    recorder: Arc::clone(&self.recorder),
                    began,
                    exchange: Some((asked, Vec::new())),
                }) as Box<dyn ReplyStream>),
                Err(error) => {
                    // That nothing could be written is told by the next reply.
                    let _ = self.recorder.keep(asked, Vec::new(), failed(&error, None));
                    Err(error)
                }
            }
        })
    }

    fn preview(&self, request: ModelRequest<'_>) -> Value {
        self.model.preview(request)
    }

    fn inner(&self) -> Option<&dyn ChatModel> {
        Some(&*self.model)
    }
}

impl ReplyStream for RecordedStream {
    fn allowance(&self) -> Option<Allowance> {
        self.reply.allowance()
    }

    fn count_taken(&self) -> Option<TakenTokens> {
        self.reply.count_taken()
    }

    fn next(&mut self) -> BoxFuture<'_, Result<Delta, ModelError>> {
        Box::pin(async {
            let next = self.reply.next().await;
            let ms = count_millis(self.began);
            let what = match &next {
                Ok(Delta::Text(text)) => Some(PieceKind::Text(text.clone())),
                Ok(Delta::Reasoning(text)) => Some(PieceKind::Reasoning(text.clone())),
                Ok(Delta::CallBegun(name)) => Some(PieceKind::Call(name.clone())),
                Ok(Delta::Notice(_) | Delta::Searched(_) | Delta::Finished(_)) | Err(_) => None,
            };
            if let (Some(what), Some((_, pieces))) = (what, &mut self.exchange) {
                pieces.push(ReplyPiece { ms, what });
            }
            let end = match &next {
                Ok(Delta::Finished(end)) => ExchangeEnd::Reply(RecordedReply {
                    ms,
                    parts: end.parts.clone(),
                    finish: end.finish,
                    usage: end.usage,
                    cost_usd: end.cost_usd,
                    streamed: end.streamed,
                }),
                Err(error) => failed(error, self.reply.count_taken()),
                Ok(_) => return next,
            };
            if let Some((request, pieces)) = self.exchange.take()
                && let Err(why) = self.recorder.keep(request, pieces, end)
            {
                let model = String::new();
                return Err(ModelError {
                    model,
                    ..ModelError::new(crate::model::ModelErrorKind::NotRecorded, "", why)
                });
            }
            next
        })
    }
}
