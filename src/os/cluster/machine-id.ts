/** Names that follow from the identity of a node. */
import { uuidOfHex } from '../../wire/probe/signature.ts'

/** machine-id(5): 32 hexadecimal digits, here a digest of the identity. */
export function machineId(nodeId: string): string {
  return new Bun.CryptoHasher('sha256').update(nodeId).digest('hex').slice(0, 32)
}

/** The machine id as a UUID. */
export const machineUuid = (nodeId: string): string => uuidOfHex(machineId(nodeId))

/** The name of an iSCSI initiator (RFC 3720, 3.2.6.3.1), as the field forms it, so that targets that permit it still do. */
export const initiatorName = (id: string): string => `iqn.2017-11.dev.talos:${id}`

/** The UUID of an NVMe host, as the field forms it: its 16 bytes are the first 16 characters of the machine id, not their value. */
export const nvmeHostId = (id: string): string => uuidOfHex(Buffer.from(id.slice(0, 16), 'latin1').toString('hex'))

/** The qualified name of an NVMe host. */
export const nvmeHostName = (id: string): string => `nqn.2017-11.dev.talos:uuid:${nvmeHostId(id)}`
