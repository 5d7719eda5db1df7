/** Recovery keys that a machine encrypted to recipients, as its resources show them. */
import { decrypt } from '../../../wire/age/file.ts'
import { DecodeError } from '../../../wire/decode-error.ts'
import { parseRecoveryKey } from '../../../wire/luks2/recovery-key.ts'
import type { Cluster } from '../cluster.ts'
import { specOf } from '../resource/definition.ts'

const type = 'VolumeRecoveries.block.ichor.dev'
const timeout = 30_000
const frame = /^-----BEGIN AGE ENCRYPTED FILE-----\n([A-Za-z0-9+/=\n]{1,5000})-----END AGE ENCRYPTED FILE-----\n$/

/** The volumes that each key opens, of those that an identity reads. Throws an error of one line where there is none. */
export async function escrowedKeys(cluster: Cluster, identities: readonly Uint8Array[]): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>()
  const reasons: string[] = []
  for await (const { resource } of cluster.stream('cosi.resource.State/List', { namespace: 'runtime', type }, { timeout })) {
    const { keys = [] } = (resource ? (specOf(resource) as { keys?: { escrow?: string }[] } | undefined) : undefined) ?? {}
    const id = resource?.metadata?.id ?? ''
    for (const { escrow = '' } of keys) {
      if (escrow === '') continue
      try {
        const key = await keyOf(escrow, identities)
        found.set(key, [...(found.get(key) ?? []), id])
      } catch (error) {
        if (!(error instanceof DecodeError)) throw error
        reasons.push(`${id}: ${error.message}`)
      }
    }
  }
  if (found.size > 0) return found
  if (reasons.length > 0) throw new Error(`the identity reads no recovery key: ${reasons.join('; ')}`)
  throw new Error(
    'the node shows no recovery key for recipients: configure a DiskRecoveryConfig; only administrators see keys of open volumes',
  )
}

async function keyOf(escrow: string, identities: readonly Uint8Array[]): Promise<string> {
  const [, body] = frame.exec(escrow) ?? []
  if (body === undefined) throw new DecodeError('recovery key for recipients', 0, 'not an age file in ASCII')
  const chunks = (async function* () {
    yield new Uint8Array(Buffer.from(body, 'base64'))
  })()
  return parseRecoveryKey(Buffer.concat(await Array.fromAsync(decrypt(chunks, identities))).toString())
}
