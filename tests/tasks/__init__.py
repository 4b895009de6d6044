"""Tests of short tasks."""
