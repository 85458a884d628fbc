//! Runs and models on disk: file-system trait, atomic directories, safetensors, HF and llama2.c files.
