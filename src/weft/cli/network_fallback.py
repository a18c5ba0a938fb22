"""The check of ``weft run --fallback refuse``."""

__all__ = ["refuse_fallbacks"]


def refuse_fallbacks(program) -> None:
    """Raise ModelError for the first operator that another runtime or the host must compute."""
    from weft.models.errors import ModelError
    from weft.models.work import HostProduct, HostWork, RecurrentWork

    for step in program.host:
        runtime = isinstance(step.work, HostWork) and step.work.kernel.endswith(".model")
        parts = step.work.products if isinstance(step.work, RecurrentWork) else (step.work,)
        product = any(isinstance(part, HostProduct) for part in parts)
        if runtime or product and not step.placement.on_weft:
            field = f"; {step.placement.field} would change this" if step.placement.field else ""
            raise ModelError(
                f"{program.name}: operator {step.position[0]} ({step.operators[0]} {step.name})"
                f" must not run on the host with --fallback refuse: {step.placement.reason}{field}"
            )
