import { expect } from 'bun:test'
import { eventually, type TestCluster } from './cluster.ts'

/** Components of a node whose settings are trusted. */
async function trusted(cluster: TestCluster, node: string): Promise<string[]> {
  const { stdout } = await cluster.talosctl('read', '-n', node, '/system/state/component-settings.json')
  return Object.entries<{ good?: object }>(JSON.parse(stdout || '{"components":{}}').components).flatMap(([name, { good }]) =>
    good ? name : [],
  )
}

/** Waits until the settings of so many components of a node are trusted, which they are once the component ran with them for a while. */
export const settled = (cluster: TestCluster, node: string, components: number): Promise<void> =>
  eventually(async () => expect(await trusted(cluster, node)).toHaveLength(components), 90)
