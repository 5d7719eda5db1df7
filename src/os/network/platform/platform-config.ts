/** Network configuration from a platform: one form for all platforms, in the notation of its resource. */

import * as v from 'valibot'
import { LineCounter, parseDocument } from 'yaml'
import type { SpecOf } from '../../../cosi/resource.ts'
import { duplicateKey } from '../../../document/unique-keys.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { familyOf } from '../../../wire/prefix.ts'
import { canonicalDestination, canonicalPrefix } from '../link/canonical.ts'
import { PlatformConfig } from '../resources/platform-config.ts'

/** The network configuration of a platform. */
export type PlatformNetwork = SpecOf<typeof PlatformConfig>

/** Invalid data from a platform. The message is one line with place and cause. */
export class PlatformConfigError extends Error {
  override readonly name = 'PlatformConfigError'
}

const longest = 256 << 10

/** Parses YAML of a platform into a mapping. Alias expansion is limited. */
export function parseMapping(text: string, what: string): Readonly<Record<string, unknown>> {
  if (text.length > longest) throw new PlatformConfigError(`${what}: ${text.length} characters exceed the limit`)
  let value: unknown
  try {
    const lines = new LineCounter()
    const document = parseDocument(text, { logLevel: 'error', uniqueKeys: false, lineCounter: lines })
    const wrong = document.errors[0]?.message ?? duplicateKey(document, lines)
    if (wrong) throw new Error(wrong)
    value = document.toJS({ maxAliasCount: 0 })
  } catch (error) {
    throw new PlatformConfigError(`${what}: ${messageOf(error).split('\n')[0]}`)
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) throw new PlatformConfigError(`${what}: expected a mapping`)
  return value as Record<string, unknown>
}

/** Parses the network configuration of a bare-metal machine (META key 10). Missing fields get their defaults. */
export function readPlatformConfig(text: string, what = 'META key 10'): PlatformNetwork {
  const given = parseMapping(text, what)
  const layer = 'platform'
  const list = (key: string): Record<string, unknown>[] => {
    const value = given[key] ?? []
    if (!Array.isArray(value) || value.some((entry) => entry === null || typeof entry !== 'object'))
      throw new PlatformConfigError(`${what}: "${key}" must be a list of mappings`)
    return value
  }
  const text_ = (value: unknown) => (typeof value === 'string' ? value : '')
  const family = (...texts: unknown[]) => familyOf(texts.map(text_).join(''))
  const whole = {
    ...given,
    addresses: list('addresses').map((entry) => ({
      family: family(entry.address),
      scope: 'global',
      flags: 'permanent',
      ...entry,
      address: typeof entry.address === 'string' ? canonicalPrefix(entry.address) : entry.address,
      layer,
    })),
    links: list('links').map((entry) => ({ logical: false, up: true, mtu: 0, kind: '', type: 'ether', ...entry, layer })),
    routes: list('routes').map((entry) => ({
      family: family(entry.dst, entry.gateway),
      src: '',
      gateway: '',
      table: 'main',
      priority: 1024,
      scope: entry.gateway ? 'global' : 'link',
      type: 'unicast',
      flags: '',
      protocol: 'static',
      ...entry,
      dst: canonicalDestination(text_(entry.dst)),
      layer,
    })),
    hostnames: list('hostnames').map((entry) => ({ domainname: '', ...entry, layer })),
    resolvers: list('resolvers').map((entry) => ({ ...entry, layer })),
    timeServers: list('timeServers').map((entry) => ({ ...entry, layer })),
    operators: list('operators').map((entry) => ({ requireUp: true, ...entry, layer })),
  }
  const read = v.safeParse(PlatformConfig.schema, whole)
  if (read.success) return read.output
  const [issue] = read.issues
  throw new PlatformConfigError(`${what}: ${v.getDotPath(issue) ?? 'value'}: ${issue.message}`)
}
