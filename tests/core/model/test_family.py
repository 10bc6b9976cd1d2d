"""Which class a model is made with, and which families are refused before a weight is read."""

from __future__ import annotations

import transformers

from grpo_core.model.family import auto_class, family_fault, reads_images


def test_a_vision_language_config_is_made_with_the_class_that_reads_images() -> None:
    config = transformers.Qwen2VLConfig(architectures=["Qwen2VLForConditionalGeneration"])
    assert reads_images(config)
    assert auto_class(config) is transformers.AutoModelForImageTextToText
    assert family_fault(config) is None


def test_a_text_config_stays_with_the_causal_class() -> None:
    config = transformers.Qwen3Config(architectures=["Qwen3ForCausalLM"])
    assert not reads_images(config)
    assert auto_class(config) is transformers.AutoModelForCausalLM
    assert family_fault(config) is None


def test_a_family_that_attends_both_ways_inside_an_image_is_refused() -> None:
    config = transformers.Gemma3Config(architectures=["Gemma3ForConditionalGeneration"])
    assert "attends both ways inside an image" in str(family_fault(config))


def test_a_family_that_cannot_be_given_encoded_images_is_refused() -> None:
    config = transformers.MllamaConfig(architectures=["MllamaForConditionalGeneration"])
    assert "cannot be given images that are encoded already" in str(family_fault(config))


def test_what_is_no_language_model_is_refused_by_name() -> None:
    assert "'vit' is not a causal language model" in str(family_fault(transformers.ViTConfig()))
    encoder = transformers.BertConfig(architectures=["BertForMaskedLM"])
    assert "it holds a BertForMaskedLM" in str(family_fault(encoder))
