/** A schematic: what an image differs in from the one of its release. Its id is the hash of its canonical form. */
import * as v from 'valibot'
import { ConfigError, formatIssue } from '../../document/config-error.ts'
import { decode } from '../../document/decode.ts'
import { anything, flag, listOf, oneOf, section, text, unsigned } from '../../document/fields.ts'
import { isObject } from '../../document/is-object.ts'
import { configLimits, parseStream } from '../../document/stream.ts'
import { type Canonical, canonicalYaml, naturalOrder } from './canonical-yaml.ts'
import { FactoryError } from './factory-error.ts'

/** Bytes of a schematic, most of which are an embedded configuration. */
export const longestSchematic = 1 << 20

const limits = { ...configLimits, bytes: longestSchematic, depth: 32, documents: 1, tokens: 50_000 }

const schema = section({
  owner: text,
  overlay: section({ image: text, name: text, options: v.record(v.string(), anything) }),
  customization: section({
    embeddedMachineConfiguration: text,
    extraKernelArgs: listOf(text),
    meta: listOf(v.object({ key: unsigned(8), value: v.optional(text, '') })),
    systemExtensions: section({ officialExtensions: listOf(text) }),
    bootloader: oneOf('', 'none', 'dual-boot', 'sd-boot', 'grub'),
    secureboot: section({
      enrollKeys: oneOf('', 'if-safe', 'manual', 'force', 'off'),
      includeWellKnownCertificates: flag,
    }),
    diskImage: section({ sectorSize: unsigned(16) }),
  }),
})

type Content = v.InferOutput<typeof schema>

/** A schematic with its name. */
export interface Schematic {
  /** Hex SHA-256 of `yaml`. */
  readonly id: string
  readonly yaml: string
  readonly customization: NonNullable<Content['customization']>
  readonly overlay: NonNullable<Content['overlay']>
}

/** Parses YAML or JSON; unknown keys are refused. Throws FactoryError. */
export function parseSchematic(bytes: Uint8Array): Schematic {
  const content = decodeSchematic(bytes)
  const yaml = canonicalYaml(canonicalForm(content))
  return { id: idOf(yaml), yaml, customization: content.customization ?? {}, overlay: content.overlay ?? {} }
}

/** The id of a schematic in its canonical form. */
export const idOf = (yaml: string): string => new Bun.CryptoHasher('sha256').update(yaml).digest('hex')

function decodeSchematic(bytes: Uint8Array): Content {
  try {
    const { documents, lines } = parseStream(bytes, limits)
    const [document] = documents
    if (!document?.contents) throw new FactoryError(400, 'the schematic is empty: the default one is "{}"')
    const { value, issues } = decode(document.contents, schema, { document, lines })
    if (issues.length > 0 || !value) throw new ConfigError(issues)
    checkTexts(value)
    return value
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    throw new FactoryError(400, `schematic: ${error.issues.slice(0, 5).map(formatIssue).join('; ')}`)
  }
}

/** Characters that YAML treats as ends of lines and others do not, and keys that do not fit a line, have no canonical form here. */
function checkTexts(value: unknown): void {
  if (typeof value === 'string') {
    if (/^\ufeff|[\u2028\u2029]|\p{Cs}/u.test(value))
      throw new FactoryError(400, 'schematic: byte order marks, line separators of Unicode and halves of characters are refused')
  } else if (Array.isArray(value)) value.forEach(checkTexts)
  else if (isObject(value))
    for (const [key, inner] of Object.entries(value)) {
      checkTexts(key)
      if (/\p{Cc}/u.test(key) || key.length > 100)
        throw new FactoryError(400, 'schematic: a key must have at most 100 characters, none of them a control character')
      checkTexts(inner)
    }
}

/** Keys in their order; those with nothing in them are left out, except `customization`. */
function canonicalForm({ owner, overlay, customization = {} }: Content): ReadonlyMap<string, Canonical> {
  const {
    embeddedMachineConfiguration,
    extraKernelArgs = [],
    meta = [],
    systemExtensions,
    bootloader,
    secureboot,
    diskImage,
  } = customization
  const form = filled({
    owner: owner ?? '',
    overlay: filled({ image: overlay?.image ?? '', name: overlay?.name ?? '', options: optionsOf(overlay?.options ?? {}) }),
  })
  const custom = filled({
    embeddedMachineConfiguration: embeddedMachineConfiguration ?? '',
    extraKernelArgs,
    meta: meta.map(({ key, value }) => new Map<string, Canonical>(Object.entries({ key, value }))),
    systemExtensions: filled({ officialExtensions: systemExtensions?.officialExtensions ?? [] }),
    bootloader: bootloader ?? '',
    secureboot: filled({
      enrollKeys: secureboot?.enrollKeys ?? '',
      includeWellKnownCertificates: secureboot?.includeWellKnownCertificates ?? false,
    }),
    diskImage: filled({ sectorSize: diskImage?.sectorSize ?? 0 }),
  })
  return new Map<string, Canonical>([...form, ['customization', custom]])
}

function filled(entries: Record<string, Canonical>): ReadonlyMap<string, Canonical> {
  const empty = (value: Canonical) =>
    value === '' ||
    value === 0 ||
    value === false ||
    (Array.isArray(value) && value.length === 0) ||
    (value instanceof Map && value.size === 0)
  return new Map(Object.entries(entries).filter(([, value]) => !empty(value)))
}

function optionsOf(value: unknown): Canonical {
  if (Array.isArray(value)) return value.map(optionsOf)
  if (isObject(value))
    return new Map(
      Object.entries(value)
        .sort(([a], [b]) => naturalOrder(a, b))
        .map(([key, inner]) => [key, optionsOf(inner)]),
    )
  return value as string | number | boolean | null
}

/** The schematic that changes nothing. */
export const defaultSchematic: Schematic = parseSchematic(Buffer.from('{}'))
