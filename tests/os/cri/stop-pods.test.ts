import { expect, test } from 'bun:test'
import { endAll } from '../../../src/os/cri/stop-pods.ts'
import { RpcError } from '../../../src/rpc/status.ts'

/** A daemon whose containers end, are gone, or are waited for in vain. */
function daemon(fates: Record<string, RpcError | undefined>, killed: string[] = []) {
  const unary = async (path: string, { containerId, signal }: { containerId: string; signal?: number }) => {
    if (path.endsWith('/Kill')) killed.push(`${containerId} ${signal}`)
    const fate = fates[containerId]
    if (path.endsWith('/Wait') && fate) throw fate
    return {}
  }
  return { unary } as unknown as Parameters<typeof endAll>[0]
}

const containers = ['a', 'b', 'c', 'd'].map((name) => ({ id: name, internalId: name }))

test('containers that do not end are reported with their errors, and delay nothing', async () => {
  const killed: string[] = []
  const fates = {
    a: undefined,
    b: new RpcError('NotFound', 'no such task'),
    // The daemon's own deadline may fire before ours, and has no status of its own.
    c: new RpcError('Unknown', 'context deadline exceeded'),
    d: new RpcError('DeadlineExceeded', 'no answer in time'),
  }
  expect(await endAll(daemon(fates, killed), containers, { signal: 'SIGTERM', timeout: 100 })).toEqual([
    { id: 'c', internalId: 'c', reason: 'context deadline exceeded' },
    { id: 'd', internalId: 'd', reason: 'no answer in time' },
  ])
  expect(killed.sort()).toEqual(['a 15', 'b 15', 'c 15', 'd 15'])
})
