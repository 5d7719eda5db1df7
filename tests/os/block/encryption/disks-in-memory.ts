/** Encrypted volumes on disks in memory, whose keys are those of the machine, and the keys that it makes for recipients. */
import { expect } from 'bun:test'
import { systemClock } from '../../../../src/cosi/clock.ts'
import type { Machine } from '../../../../src/os/area.ts'
import { EncryptedVolumes } from '../../../../src/os/block/encryption/encrypted-volumes.ts'
import type { EncryptionKey } from '../../../../src/os/block/encryption/passphrase.ts'
import { escrowedSlots } from '../../../../src/os/block/encryption/recovery.ts'
import { decrypt } from '../../../../src/wire/age/file.ts'
import { newIdentity, parseIdentity, recipientOf } from '../../../../src/wire/age/keys.ts'
import { type Header, readHeader } from '../../../../src/wire/luks2/header.ts'
import { openSlot } from '../../../../src/wire/luks2/key-slots.ts'
import type { MemoryDisk } from '../../../support/memory-disk.ts'
import { secret, volume } from '../../../wire/luks2/volume.ts'

/** UUID of the machine. */
export const uuid = '3e2a4d50-71c9-4a55-9d4e-0b0f6a1c2d3e'
const keys: EncryptionKey[] = [{ slot: 0, type: 'nodeID' }]
/** Identities of two administrators. */
export const [alice, bob] = [parseIdentity(newIdentity()), parseIdentity(newIdentity())]
/** Their recipients. */
export const whom = (...identities: Uint8Array[]) => identities.map(recipientOf)

/** The header on a disk. */
export const headerOn = (disk: MemoryDisk): Promise<Header> => readHeader(disk.read, disk.size)

/** The key in an escrow, read with an identity. */
export async function keyIn(escrow: string, identity: Uint8Array): Promise<string> {
  const file = Buffer.from(escrow.replaceAll(/-----.*-----/g, ''), 'base64')
  const chunks = (async function* () {
    yield new Uint8Array(file)
  })()
  return Buffer.concat(await Array.fromAsync(decrypt(chunks, [identity])))
    .toString()
    .trim()
}

/** The key for recipients in a header, read with an identity; checked to open its slot. */
export async function escrowed(disk: MemoryDisk, identity: Uint8Array): Promise<string> {
  const { metadata } = await headerOn(disk)
  const found = escrowedSlots(metadata)
  expect(found.length).toBe(1)
  const [{ slot, escrow } = { slot: -1, escrow: '' }] = found
  const key = await keyIn(escrow, identity)
  expect((await openSlot(metadata, slot, secret(key), disk.read))?.length).toBe(64)
  return key
}

/** A machine on these disks, one volume each, of the name of its device. */
export function start(disks: Record<string, MemoryDisk>) {
  const logged: string[] = []
  const note = (text: string, fields: object) => void logged.push(`${text} ${JSON.stringify(fields)}`)
  const log = { info: note, warn: note, error: note }
  const kernel = {
    block: {
      openDevice: async (path: string) => {
        const disk = disks[path.slice('/dev/'.length)]
        if (!disk) throw new Error(`no ${path}`)
        return { ...disk, path, sectorSize: 512, close: async () => {} }
      },
    },
    mapper: { deviceNumber: () => 1, createMapping: () => ({ device: '/dev/dm-0' }) },
    files: { mkdirAll() {}, symlink() {}, readTextIfThere: () => undefined },
  }
  const machine = { kernel, log, clock: systemClock } as unknown as Machine
  const volumes = new EncryptedVolumes(machine, {})
  const provide = (id: string, recipients: string[] | undefined, machineUUID = uuid) =>
    volumes.provide(id, `/dev/${id}`, { encryption: { provider: 'luks2', keys }, sources: { machineUUID }, sync: true, recipients })
  return { volumes, provide, logged }
}

/** The disk of a new volume. */
export const disk = async (id: string) => (await volume(`${uuid}${id}`)).disk
