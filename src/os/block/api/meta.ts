import { type Method, unary } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import { DecodeError } from '../../../wire/decode-error.ts'
import { type Meta, metaId, metaTags, upgradeTags } from '../meta/meta.ts'

const roles = ['os:admin', 'os:meta:writer'] as const

/** Writes and deletes META values. Until the machine is installed they are kept in memory only. */
export const metaMethods = (meta: Meta): Method[] => [
  unary('machine.MachineService/MetaWrite', [...roles], async ({ key, value }) => {
    checkKey('meta write', key)
    const before = meta.get(key)
    meta.set(key, Buffer.from(value).toString())
    try {
      await meta.flush()
    } catch (error) {
      if (before === undefined) meta.delete(key)
      else meta.set(key, before)
      if (error instanceof DecodeError) throw new RpcError('ResourceExhausted', `meta write: key ${key} does not fit: ${error.message}`)
      throw error
    }
    return { messages: [{}] }
  }),
  unary('machine.MachineService/MetaDelete', [...roles], async ({ key }) => {
    checkKey('meta delete', key)
    if (!meta.delete(key)) throw new RpcError('NotFound', `meta delete: no such key ${key}`)
    await meta.flush()
    return { messages: [{}] }
  }),
]

function checkKey(what: string, key: number): void {
  if (key < 1 || key > 255) throw new RpcError('InvalidArgument', `${what}: keys must be from 1 to 255: ${key}`)
  if (upgradeTags.has(key))
    throw new RpcError('PermissionDenied', `${what}: key ${metaId(key)} holds the upgrade state, which only the system writes`)
  if (key === metaTags.stateEncryption)
    throw new RpcError('PermissionDenied', `${what}: key ${metaId(key)} is how STATE is opened, which follows the configuration`)
}
