"""Whole models: tiny random ones of transformers' types, folders on disk, modules inside; their parts and their passes."""
