/** A resource as YAML or as an object for JSON and templates. */

import type { cosi } from '../../../rpc/messages.ts'
import { rfc3339 } from '../output/units.ts'
import { specOf } from './definition.ts'

/** A resource as the YAML document that users know, four spaces deep; the spec's text is the node's own. */
export function toYaml(resource: cosi.resource.Resource, node: string, event?: string): string {
  const { metadata: meta, spec } = resource
  const lines = [`node: ${scalar(node)}`]
  if (event) lines.push(`event: ${event}`)
  lines.push('metadata:')
  lines.push(
    `    namespace: ${scalar(meta?.namespace ?? '')}`,
    `    type: ${scalar(meta?.type ?? '')}`,
    `    id: ${scalar(meta?.id ?? '')}`,
  )
  lines.push(
    `    version: ${meta?.version ?? ''}`,
    `    owner:${meta?.owner ? ` ${scalar(meta.owner)}` : ''}`,
    `    phase: ${meta?.phase ?? ''}`,
  )
  lines.push(`    created: ${rfc3339(meta?.created)}`, `    updated: ${rfc3339(meta?.updated)}`)
  for (const name of ['labels', 'annotations'] as const) {
    const entries = Object.entries(meta?.[name] ?? {})
    if (entries.length > 0)
      lines.push(
        `    ${name}:`,
        ...entries.map(
          ([key, value]) => `        ${scalar(key)}:${value ? ` ${notPlain.test(value) ? JSON.stringify(value) : value}` : ''}`,
        ),
      )
  }
  if (meta?.finalizers.length) lines.push('    finalizers:', ...meta.finalizers.map((one) => `        - ${scalar(one)}`))
  lines.push(...specLines(spec?.yamlSpec ?? ''))
  return `${lines.join('\n')}\n`
}

/** A moment in an object that is shown: JSON of its text, in a template as in a whole. */
class Moment {
  constructor(readonly text: string) {}
  toJSON(): string {
    return this.text
  }
}

/** Labels and annotations as the YAML of them reads, in which their values stand as they are: `1` is a number, nothing is null. */
function asRead(entries: Readonly<Record<string, string>>): Record<string, unknown> {
  const values = Object.entries(entries).map(([key, value]) => {
    if (value === '') return [key, null]
    if (/^(true|false)$/.test(value)) return [key, value === 'true']
    return [key, /^(0|-?[1-9]\d{0,14})$/.test(value) ? Number(value) : value]
  })
  return Object.fromEntries(values)
}

/** A resource as one object: metadata, spec and node, with the event when it is watched. */
export function toObject(resource: cosi.resource.Resource, node: string, event?: string): Record<string, unknown> {
  const { metadata: meta } = resource
  const version = Number(meta?.version)
  const metadata: Record<string, unknown> = {
    namespace: meta?.namespace,
    type: meta?.type,
    id: meta?.id,
    version: Number.isSafeInteger(version) ? version : meta?.version,
    owner: meta?.owner || null,
    phase: meta?.phase,
    created: new Moment(rfc3339(meta?.created)),
    updated: new Moment(rfc3339(meta?.updated)),
  }
  if (Object.keys(meta?.labels ?? {}).length > 0) metadata.labels = asRead(meta?.labels ?? {})
  if (Object.keys(meta?.annotations ?? {}).length > 0) metadata.annotations = asRead(meta?.annotations ?? {})
  if (meta?.finalizers.length) metadata.finalizers = meta.finalizers
  return { metadata, spec: specOf(resource) ?? null, node, ...(event && { event }) }
}

function specLines(yaml: string): string[] {
  const lines = yaml.replace(/\n$/, '').split('\n')
  const [first = ''] = lines
  if (first === '') return ['spec: {}']
  const block = /^(- |-$|[^\s|>"'{[].*:( |$))/.test(first) || /^("[^"]*"|'[^']*'):( |$)/.test(first)
  if (!block) return [`spec: ${first}`, ...lines.slice(1)]
  return ['spec:', ...lines.map((line) => (line === '' ? '' : `    ${line}`))]
}

/** Texts that YAML, in one version or another, reads as something else than a text. */
const meansMore =
  /^(|~|null|true|false|yes|no|on|off|y|n|[+-]?\.(inf|nan)|[+-]?[\d_]+|0[xob][\da-f_]+|[+-]?[\d.]+(e[+-]?\d+)?|\d{4}-\d\d-\d\d.*)$/i

/** Letters that may not begin, be in, or end a plain scalar. */
const notPlain = /^[\s,[\]{}#&*!|>'"%@`]|^[-?:](\s|$)|: | #|[:\s]$|[\n\t]/

/** A text as a YAML scalar: plain where that reads back as the same text, else in double quotes. */
function scalar(text: string): string {
  const dotted = /^\d+\.\d+\.\d/.test(text)
  return notPlain.test(text) || (meansMore.test(text) && !dotted) ? JSON.stringify(text) : text
}
