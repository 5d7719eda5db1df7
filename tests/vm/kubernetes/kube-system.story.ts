/**
 * From an installed machine to a cluster: bootstrap, the pods of kube-system, a selection of the Kubernetes conformance suite, and
 * a reboot. With ICHOR_VM_STATE what was reached is kept, and the next run of the story continues from there.
 */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { exactly, runSuite } from '../../conformance/suite.ts'
import { testCluster, testImages } from './cluster.ts'

const minutes = 60_000
const cluster = testCluster()
const programs = testImages()
const { on } = cluster
/** Tests of the suite that need one node, and reach it by the API server alone. */
const chosen = readFileSync(join(import.meta.dir, '../../conformance/one-node.txt'), 'utf8')
  .trimEnd()
  .split('\n')

test(
  'a selection of the conformance suite passes on it',
  async () => {
    const choice = { focus: chosen.map(exactly), procs: 1 }
    const specs = await runSuite(programs(), on.path('kubeconfig'), choice, on.path('conformance'))
    expect(specs.map(({ name, passed, reason }) => (passed ? name : `${name}: ${reason}`)).sort()).toEqual([...chosen].sort())
  },
  180 * minutes,
)

test(
  'a reboot by the API brings it back from the disk as it was',
  async () => {
    const identity = (await on.admin('get', 'identity', '-o', 'yaml')).stdout
    on.machine.forget()
    expect((await on.admin('reboot', '--mode', 'powercycle', '--wait=false')).code).toBe(0)
    await on.machine.shows(/sequence=reboot phase=volumeFinalize /, 10 * minutes)
    await on.machine.shows(/machine configuration found.*source=state/, 15 * minutes)
    await on.machine.outputs(() => on.admin('services'), /etcd\s+Running\s+OK/, 30 * minutes)
    expect((await on.admin('get', 'identity', '-o', 'yaml')).stdout.match(/nodeId: .*/)?.[0]).toBe(identity.match(/nodeId: .*/)?.[0])
  },
  60 * minutes,
)
