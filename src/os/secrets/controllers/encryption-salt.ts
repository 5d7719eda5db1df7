import { randomBytes } from 'node:crypto'
import { parse, stringify } from 'yaml'
import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import { mountId, VolumeMountStatus } from '../../block/resources/volume-mount.ts'
import type { Kernel } from '../../kernel.ts'
import { EncryptionSalt } from '../resources/encryption-salt.ts'

/** Where the salt is kept over restarts, on STATE. */
const saltPath = '/system/state/encryption-salt.yaml'
const saltLength = 32

/**
 * The salt of this node, generated when STATE is mounted for the first time and kept as long as STATE. A damaged one is an error
 * and not replaced: with another salt the volumes that are locked to STATE would not open.
 */
export const keepEncryptionSalt = ({ mode, files }: Pick<Kernel, 'mode' | 'files'>): Controller =>
  defineController({
    name: 'secrets.EncryptionSaltController',
    inputs: { mounts: weak(VolumeMountStatus, { id: mountId('STATE') }) },
    outputs: { salt: shared(EncryptionSalt) },
    async reconcile({ mounts, salt, log }) {
      const before = salt.get('salt')?.spec.diskSalt
      if (mode !== 'container' && !mounts.get(mountId('STATE'))) {
        if (before) salt.put('salt', { diskSalt: before })
        return
      }
      const text = files.readTextIfThere(saltPath)
      const diskSalt = text === undefined ? (before ?? new Uint8Array(randomBytes(saltLength))) : saltOf(text)
      if (text === undefined) {
        await files.writeAtomic(saltPath, stringify({ diskSalt: [...diskSalt] }), { mode: 0o600 })
        log.info('encryption salt established', { path: saltPath })
      }
      salt.put('salt', { diskSalt })
    },
  })

/** The salt in the file: `diskSalt`, a list of bytes. */
function saltOf(text: string): Uint8Array<ArrayBuffer> {
  const { diskSalt } = (parse(text) ?? {}) as { diskSalt?: unknown }
  const valid =
    Array.isArray(diskSalt) && diskSalt.length === saltLength && diskSalt.every((byte) => Number.isInteger(byte) && byte >= 0 && byte < 256)
  if (!valid) throw new Error(`read ${saltPath}: expected "diskSalt", a list of ${saltLength} bytes; restore the file or reset STATE`)
  return Uint8Array.from(diskSalt)
}
