"""Options of the reward."""

from pydantic import BaseModel, ConfigDict, Field


class VowelOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    scale: float = Field(default=1.0, gt=0, description="What the share is multiplied by.")
