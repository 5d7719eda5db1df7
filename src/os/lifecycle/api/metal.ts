import { clientStream, type Method, serverStream, unary } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'

/** Refuses, in one line, what needs a disk of the node's own. */
const refused = (what: string, why: string) => (): never => {
  throw new RpcError('FailedPrecondition', `${what}: method is not supported in container mode: ${why}`)
}

const image = 'the node’s system is the image its container was made from'
const meta = 'a container has no META partition'

/** What only a machine with its system on a disk can do, as a container node answers it. */
export const refusedInContainer: readonly Method[] = [
  unary('machine.MachineService/Upgrade', ['os:admin'], refused('upgrade', image)),
  unary('machine.MachineService/Rollback', ['os:admin'], refused('rollback', image)),
  unary('machine.MachineService/MetaWrite', ['os:admin', 'os:meta:writer'], refused('meta write', meta)),
  unary('machine.MachineService/MetaDelete', ['os:admin', 'os:meta:writer'], refused('meta delete', meta)),
  serverStream('machine.LifecycleService/Install', ['os:admin'], refused('install', image)),
  serverStream('machine.LifecycleService/Upgrade', ['os:admin'], refused('upgrade', image)),
  clientStream('ichor.v1.ReleaseService/Send', ['os:admin'], refused('send image', image)),
  serverStream('ichor.v1.ReleaseService/Plan', ['os:admin'], refused('plan', image)),
  serverStream('ichor.v1.ReleaseService/Upgrade', ['os:admin'], refused('upgrade', image)),
  serverStream('ichor.v1.ReleaseService/Install', ['os:admin'], refused('install', image)),
]
