"""The settings all scenarios are run with: a small site."""

from __future__ import annotations

from jobman.settings import settings_from_text

TEXT = """
default_flavor: tiny
flavors:
- name: tiny
  shape: {type: slot, count: 1}
- name: one-core
  resources: {requests: {cpu: 1}}
queues:
- name: interactive
- name: batch
priorities:
- name: low
  value: -1000
- name: normal
  value: 0
- name: high
  value: 1000
resource_types: [licence, rack]
user: {name: ada}
profiles:
- name: tools
  attributes: {environment: {TOOLS: /opt/tools}}
- name: licensed
  labels: {licence: matlab}
  attributes: {environment: {LICENCE: granted}}
"""
"""A task that asks for nothing gets a slot: a place to run, and no core that another could lack."""

SETTINGS = settings_from_text(TEXT, "settings.yaml")
