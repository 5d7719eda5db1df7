import { clientStream, type Method, serverStream, unary } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'

/** Rejects, with a one-line error, methods that need a disk of the node. */
const refused = (what: string, why: string) => (): never => {
  throw new RpcError('FailedPrecondition', `${what}: method is not supported in container mode: ${why}`)
}

const image = 'the system of this node is its container image'
const meta = 'a container has no META partition'

/** How a container node answers methods that require an installed system. */
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
