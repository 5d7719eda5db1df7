/** Create is killed at any moment; destroy takes away whatever there is, from the journal alone. */

import { afterAll, expect, test } from 'bun:test'
import { freePort } from '../support/free-port.ts'
import { succeeded, TestCluster } from './cluster.ts'

const cluster = new TestCluster('torn')
afterAll(() => cluster.end())

const before = cluster.traces()

test.each([60, 120, 200, 300, 450, 650, 900, 1300, 1800, 2500, 4000, 7000])('killed %d ms after its start', async (milliseconds) => {
  const create = cluster.start('cluster', 'create', '--name', 'torn')
  await Bun.sleep(milliseconds)
  create.kill('SIGKILL')
  await create.exited
  succeeded(await cluster.destroy())
  // A program that was just being started ends by itself when it sees that its cluster is gone.
  for (let i = 0; i < 100 && cluster.traces().processes.length > 0; i++) await Bun.sleep(20)
  expect(cluster.traces()).toEqual(before)
})

test('two clusters live side by side; clashing names, networks and ports are refused with the way out', async () => {
  const other = new TestCluster('twin')
  const exposed = await freePort()
  try {
    await cluster.create('--wait=false', '--cidr', '10.61.0.0/24', '-p', `${exposed}:80`)
    await other.create('--wait=false', '--cidr', '10.62.0.0/24')
    const third = new TestCluster('third')
    try {
      const network = await third.talosctl('cluster', 'create', '--name', 'third', '--cidr', '10.61.0.0/25')
      expect(network.code).toBe(1)
      expect(network.stderr).toMatch(
        /^network 10\.61\.0\.0\/25 overlaps 10\.61\.0\.0\/24 of .*: choose another, such as --cidr 10\.\d+\.0\.0\/24\n$/,
      )
      const port = await third.talosctl('cluster', 'create', '--name', 'third', '-p', `${exposed}:80`)
      expect(port.stderr).toBe(
        `port ${exposed} of 0.0.0.0 is in use: expose another with --exposed-ports, or another address with --host-ip\n`,
      )
      expect(third.traces().mounts).toEqual([])
    } finally {
      third.close()
    }
    succeeded(await cluster.destroy())
    const left = other.traces()
    expect(left.mounts.length).toBeGreaterThan(0)
    expect(left.processes.length).toBeGreaterThan(2)
  } finally {
    succeeded(await other.destroy())
    expect(other.traces()).toEqual(before)
    other.close()
  }
})
