"""Thresholds: foreign spellings end here, and what was assumed or left unread is reported."""
