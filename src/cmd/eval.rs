//! `anneal eval`: loss and perplexity of a model on a text.

use crate::args::EvalArgs;
use crate::failure::{Failure, Outcome};
use crate::models;
use crate::out;
use anyhow::{Result, ensure};
use infer::{Loss, Network, Use, evaluate};
use model::Shape;
use model::programs::{Attention, Options, Weights};
use serde::Serialize;
use std::path::Path;
use store::RealFs;
use store::safetensors::{self, Dtype, Tensor};
use text::data::IGNORE;
use text::{Batches, Documents, Tokenizer, Tokens};
use train::run::is_token_file;

/// Tokens that are seen together unless said otherwise, where the model was made for as many.
const SEQ: usize = 256;

#[derive(Serialize)]
struct Report {
    loss: f64,
    perplexity: f64,
    tokens: usize,
    seq: usize,
    device: String,
}

pub(crate) fn run(args: EvalArgs) -> Outcome {
    let model = models::open(&args.model)?;
    let longest = model.config.max_seq_len.min(model::MAX_SEQ);
    let seq = args.max_seq_length.unwrap_or(SEQ.min(longest));
    ensure_fits(seq, longest)?;
    let batches = if args.separate {
        separate(&args, &models::need_tokenizer(&model, args.tokenizer.as_deref())?, seq)?
    } else {
        windows(&args, &model, seq)?
    };
    let machine = args.machine.build()?;
    let options = Options { weights: Weights::Ports, attention: Attention::Split };
    let shape = Shape { batch: 1, seq };
    let network = Network::new(&machine, &model.config, shape, options, &model.params, Use::Inference).map_err(Failure::running)?;
    let mut sum = Loss::default();
    for (tokens, targets) in &batches {
        let loss = evaluate(&network, &model.params, tokens, targets).map_err(Failure::running)?;
        sum = Loss { nll: sum.nll + loss.nll, targets: sum.targets + loss.targets };
    }
    if let (Some(path), Some((tokens, _))) = (&args.logits, batches.first()) {
        write_logits(path, &network, &model.params, tokens).map_err(Failure::running)?;
    }
    let device = machine.device.info().name.clone();
    let report = Report { loss: sum.mean(), perplexity: sum.perplexity(), tokens: sum.targets, seq, device };
    if args.json {
        out::line(format_args!("{}", serde_json::to_string(&report)?))?;
    } else {
        out::line(format_args!("loss {:.4} nats, perplexity {:.3}, over {} tokens", report.loss, report.perplexity, report.tokens))?;
    }
    Ok(0)
}

/// The first sequence and its logits, for comparing with another implementation: `ids` `[S]` and `logits` `[S, V]`, fp32.
fn write_logits(path: &Path, network: &Network, params: &[Vec<f32>], tokens: &[u32]) -> Result<()> {
    network.forward(params, &network.columns_of(tokens)?)?;
    let read = network.head.read()?;
    let logits: Vec<f32> = (0..tokens.len()).flat_map(|column| read.column(column)).collect();
    let ids: Vec<f32> = tokens.iter().map(|&t| t as f32).collect();
    let tensors =
        [Tensor::new("ids", vec![tokens.len()], &ids), Tensor::new("logits", vec![tokens.len(), network.config.vocab_size], &logits)];
    Ok(safetensors::write(&RealFs, path, &tensors, Dtype::F32)?)
}

fn ensure_fits(seq: usize, longest: usize) -> Result<()> {
    ensure!(seq > 0, "--max-seq-length 0: a sequence has at least one token");
    ensure!(seq <= longest, "--max-seq-length {seq}: this model and the programs of this version see at most {longest} tokens together");
    Ok(())
}

/// Inputs and targets of a sequence.
type Sequence = (Vec<u32>, Vec<u32>);

/// The whole data, sequence after sequence: every token but the first is a target once.
fn windows(args: &EvalArgs, model: &store::Model, seq: usize) -> Result<Vec<Sequence>> {
    let tokens = if is_token_file(&args.data) {
        Tokens::read_bin(&args.data, model.config.vocab_size)?
    } else {
        Tokens::encode(&Documents::read(&args.data)?, &models::need_tokenizer(model, args.tokenizer.as_deref())?)?
    };
    tokens.check_vocab(model.config.vocab_size)?;
    ensure!(tokens.len() >= 2, "{} holds {} tokens: a loss needs at least 2", args.data.display(), tokens.len());
    let seq = seq.min(tokens.len() - 1);
    Ok(Batches::new(tokens, seq)?.pass(1).map(|b| (b.tokens, b.targets)).collect())
}

/// Inputs and targets of each document, from the start token on.
fn separate(args: &EvalArgs, tokenizer: &Tokenizer, seq: usize) -> Result<Vec<Sequence>> {
    let documents = Documents::read(&args.data)?;
    let mut sequences = Vec::new();
    for text in documents.texts().iter().flat_map(|text| text.lines()).filter(|line| !line.trim().is_empty()) {
        let mut tokens: Vec<u32> = tokenizer.bos().into_iter().chain(tokenizer.encode(text)?).collect();
        tokens.truncate(seq + 1);
        let mut targets = tokens.get(1..).unwrap_or_default().to_vec();
        tokens.truncate(targets.len());
        tokens.resize(seq, 0);
        targets.resize(seq, IGNORE);
        sequences.push((tokens, targets));
    }
    Ok(sequences)
}
