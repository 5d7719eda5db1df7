import { machine as enums } from '../../../rpc/enums.ts'
import { bidi, type Method } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import type { Machine } from '../../area.ts'
import { channelOfInstance } from '../containerd-instance.ts'
import { runDebugContainer } from '../debug-container.ts'

const { PROFILE_PRIVILEGED } = enums.DebugContainerRunRequestSpec.Profile

/** A privileged container with access to the whole machine, for as long as the call lasts. */
export const debugContainer = ({ kernel }: Pick<Machine, 'kernel'>): Method => {
  const held = new Set<string>()
  return bidi('machine.DebugService/ContainerRun', ['os:admin'], async function* (messages, { signal, log }) {
    const requests = messages[Symbol.asyncIterator]()
    const { value: first } = await requests.next()
    const spec = first?.spec
    if (!spec) throw new RpcError('InvalidArgument', 'the first message must describe the container')
    if (spec.profile !== PROFILE_PRIVILEGED) throw new RpcError('InvalidArgument', 'profile is not known: there is PROFILE_PRIVILEGED')
    log.info('running debug container', { image: spec.imageName })
    yield* runDebugContainer(kernel, held, channelOfInstance(spec.containerd), spec, requests, signal)
  })
}
