/** The `manifest.yaml` of a system extension. */
import * as v from 'valibot'
import { parse } from 'yaml'
import { messageOf } from '../../../wire/error-message.ts'
import type { ExtensionMetadata } from '../../factory/extensions.ts'
import { inRange, VersionRangeError } from './version-range.ts'

/** An image that is no valid extension: every fault with what to do, one line each. */
export class ExtensionError extends Error {
  override name = 'ExtensionError'
  constructor(
    readonly origin: string,
    readonly faults: readonly string[],
  ) {
    super(faults.map((fault) => `extension "${origin}": ${fault}`).join('\n'))
  }
}

/** Bytes of a manifest. */
export const manifestLimit = 64 << 10

const text = v.optional(v.nullable(v.string()), '')

const Metadata = v.object({
  name: text,
  version: text,
  author: text,
  description: text,
  compatibility: v.optional(v.nullable(v.object({ talos: v.optional(v.nullable(v.object({ version: text }))) }))),
  extraInfo: text,
})

const Manifest = v.object({ version: text, metadata: v.optional(v.nullable(Metadata)) })

/** The metadata in a manifest. Unknown keys are ignored. Throws ExtensionError. */
export function parseExtensionManifest(origin: string, bytes: Uint8Array): ExtensionMetadata {
  if (bytes.length > manifestLimit)
    throw new ExtensionError(origin, [`"manifest.yaml" has ${bytes.length} bytes, more than ${manifestLimit}`])
  let value: unknown
  try {
    // Texts stay texts: a version such as 1.10 is no number.
    value = parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes), { schema: 'failsafe', maxAliasCount: 0 })
  } catch (error) {
    throw new ExtensionError(origin, [`"manifest.yaml" is not YAML: ${messageOf(error).split('\n')[0]}`])
  }
  const { success, output, issues } = v.safeParse(Manifest, value ?? {})
  if (!success) {
    const [issue] = issues
    throw new ExtensionError(origin, [`"manifest.yaml": ${v.getDotPath(issue) ?? 'the document'}: ${issue.message}`])
  }
  if (output.version !== 'v1alpha1') throw new ExtensionError(origin, [`"manifest.yaml": version "${output.version}": must be v1alpha1`])
  const { name, version, author, description, compatibility, extraInfo } = output.metadata ?? {}
  // The name is the name of a file in the image, and part of the label that nodes get.
  const faults = [
    ...(/^[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?$/i.test(name ?? '')
      ? []
      : [`metadata.name "${name ?? ''}": must be 1 to 63 letters, digits, "-", "_" and "."`]),
    ...(version ? [] : ['metadata.version is required']),
  ]
  if (faults.length > 0)
    throw new ExtensionError(
      origin,
      faults.map((fault) => `"manifest.yaml": ${fault}`),
    )
  return {
    name: name ?? '',
    version: version ?? '',
    author: author ?? '',
    description: description ?? '',
    compatibility: { talos: { version: compatibility?.talos?.version ?? '' } },
    ...(extraInfo && { extraInfo }),
  }
}

/** Throws ExtensionError when the range of releases in a manifest cannot be read. */
export function checkRange(origin: string, metadata: ExtensionMetadata): void {
  fits(origin, metadata, '0.0.0')
}

/** Throws ExtensionError unless the extension is made for a release. */
export function checkCompatibility(origin: string, metadata: ExtensionMetadata, release: string): void {
  if (fits(origin, metadata, release)) return
  const { version, compatibility } = metadata
  throw new ExtensionError(origin, [
    `version ${version} is made for releases ${compatibility.talos.version}, this is ${release}: take another version of it`,
  ])
}

function fits(origin: string, { compatibility }: ExtensionMetadata, release: string): boolean {
  const range = compatibility.talos.version
  try {
    return inRange(release, range)
  } catch (error) {
    if (!(error instanceof VersionRangeError)) throw error
    throw new ExtensionError(origin, [`"manifest.yaml": metadata.compatibility.talos.version "${range}" ${error.message}`])
  }
}
