"""Whole models: tiny random ones of transformers' types, folders, modules inside; their parts and their passes."""
