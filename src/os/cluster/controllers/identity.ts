import { randomBytes } from 'node:crypto'
import { parse } from 'yaml'
import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import type { Logger } from '../../../cosi/log.ts'
import { stateIsAwaited } from '../../block/public.ts'
import { mountId, VolumeMountStatus } from '../../block/resources/volume-mount.ts'
import { VolumeStatus } from '../../block/resources/volume-status.ts'
import { EtcFileSpec } from '../../files/resources/etc-file.ts'
import type { Kernel } from '../../kernel.ts'
import { machineId } from '../machine-id.ts'
import { Identity } from '../resources/identity.ts'

/** Where the identity is kept over restarts, on STATE. */
const identityPath = '/system/state/node-identity.yaml'

/** The node's identity, generated once and kept as long as STATE. The machine id follows from it. */
export const configIdentity = ({ mode, files }: Pick<Kernel, 'mode' | 'files'>): Controller =>
  defineController({
    name: 'cluster.NodeIdentityController',
    inputs: { volumes: weak(VolumeStatus, { id: 'STATE' }), mounts: weak(VolumeMountStatus, { id: mountId('STATE') }) },
    outputs: { identity: shared(Identity), etc: shared(EtcFileSpec) },
    async reconcile({ volumes, mounts, identity, etc, log }) {
      // A machine with a STATE keeps the identity on it; one that gets a STATE keeps its current identity.
      const mayBeKept = stateIsAwaited(mode, volumes, mounts)
      const before = identity.get('local')?.spec.nodeId
      if (mayBeKept && before === undefined) return
      const kept = keptIdentity(files.readTextIfThere(identityPath), log)
      const nodeId = kept ?? before ?? base62(randomBytes(32))
      if (kept !== nodeId) {
        await files.writeAtomic(identityPath, `nodeId: ${nodeId}\n`, { mode: 0o600 })
        log.info('node identity established', { node_id: nodeId })
      }
      identity.put('local', { nodeId })
      etc.put('machine-id', { contents: `${machineId(nodeId)}\n`, mode: 0o444, selinux_label: '' })
    },
  })

/** The identity in the file. A damaged one is replaced, and the other nodes learn of the new one. */
function keptIdentity(text: string | undefined, log: Logger): string | undefined {
  if (text === undefined) return undefined
  try {
    const { nodeId } = parse(text) ?? {}
    if (typeof nodeId === 'string' && nodeId !== '') return nodeId
  } catch {
    // logged below
  }
  log.warn('node identity damaged, replacing it', { path: identityPath })
  return undefined
}

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

function base62(bytes: Uint8Array): string {
  let value = BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
  let text = ''
  for (; value > 0n; value /= 62n) text = digits[Number(value % 62n)] + text
  return text
}
