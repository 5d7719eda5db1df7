import { randomBytes } from 'node:crypto'
import * as v from 'valibot'
import { parse, stringify } from 'yaml'
import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import { mountId, VolumeMountStatus } from '../../block/resources/volume-mount.ts'
import type { Kernel } from '../../kernel.ts'
import { EncryptionSalt } from '../resources/encryption-salt.ts'

/** Where the salt is kept over restarts, on STATE. */
const saltPath = '/system/state/encryption-salt.yaml'
const saltLength = 32

/**
 * The salt of this node, generated when STATE is mounted for the first time and kept as long as STATE. A damaged one is not
 * replaced: with another salt the volumes that are locked to STATE would not open.
 */
export const keepEncryptionSalt = ({ files }: { files: Pick<Kernel['files'], 'readTextIfThere' | 'writeAtomic'> }): Controller =>
  defineController({
    name: 'secrets.EncryptionSaltController',
    inputs: { mounts: weak(VolumeMountStatus, { id: mountId('STATE') }) },
    outputs: { salt: shared(EncryptionSalt) },
    async reconcile({ mounts, salt, log }) {
      const before = salt.get('salt')?.spec.diskSalt
      if (!mounts.get(mountId('STATE'))) {
        if (before) salt.put('salt', { diskSalt: before })
        return
      }
      const text = files.readTextIfThere(saltPath)
      const diskSalt = text === undefined ? (before ?? new Uint8Array(randomBytes(saltLength))) : saltOf(text)
      if (!diskSalt) {
        log.error('encryption salt damaged: restore the file or reset STATE', { path: saltPath })
        return
      }
      if (text === undefined) {
        await files.writeAtomic(saltPath, stringify({ diskSalt: [...diskSalt] }), { mode: 0o600 })
        log.info('encryption salt established', { path: saltPath })
      }
      salt.put('salt', { diskSalt })
    },
  })

/** The salt in the file: `diskSalt`, a list of bytes. Undefined when the file is damaged. */
function saltOf(text: string): Uint8Array<ArrayBuffer> | undefined {
  const { issues, output } = v.safeParse(saltFile, parsed(text))
  return issues ? undefined : Uint8Array.from(output.diskSalt)
}

const byte = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(255))
const saltFile = v.object({ diskSalt: v.pipe(v.array(byte), v.length(saltLength)) })

function parsed(text: string): unknown {
  try {
    return parse(text)
  } catch {
    return undefined
  }
}
