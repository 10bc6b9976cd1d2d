"""Templates that fill the memory in one operation are told; those of models pass."""

from __future__ import annotations

import pytest

from grpo_core.model.template_cost import template_cost
from grpo_core.model.tokenizer import FALLBACK_TEMPLATE
from tests.tiny_models import CHAT_TEMPLATE


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ('{{ "a" * 10**10 }}', "it takes a power in line 1"),
        ("x\n{% set n = 9**(9**9) %}{{ n }}", "it takes a power in line 2"),
        ('{{ "a" * 300000000 }}', "it has a number above 1,000,000 in line 1"),
        ("{% set n = 2000000000 %}{{ messages * n }}", "it has a number above 1,000,000"),
        ('{{ "a".ljust(10000000000) }}', "it has a number above 1,000,000"),
        ('{% generation %}{{ "a" * 10**10 }}{% endgeneration %}', "it takes a power"),
    ],
)
def test_an_operation_without_bounds_is_named_with_its_line(template: str, why: str) -> None:
    found = template_cost(template)
    assert found is not None
    assert found.startswith(why)


@pytest.mark.parametrize(
    "template",
    [
        CHAT_TEMPLATE,
        FALLBACK_TEMPLATE,
        "{%- for m in messages %}{%- if loop.index0 % 2 == 1 %}{%- break %}{%- endif %}{{ ' ' * 4 }}{%- endfor %}",
        "{% for m in messages %}{%- generation -%}{{ m['content'] }}{%- endgeneration -%}{% endfor %}",
        "{{ strftime_now('%d %b %Y') }}{{ 26 * 2024 }}",
        "{% for m in messages %}",
        "",
    ],
)
def test_templates_of_models_pass_and_what_is_no_template_is_left_to_the_compiler(template: str) -> None:
    assert template_cost(template) is None
