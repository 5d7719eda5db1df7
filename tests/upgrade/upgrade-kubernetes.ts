/** Upgrades the Kubernetes of a running cluster with the client's own command, to its end or to a point where it is cut off. */
import { expect } from 'bun:test'
import type { TestCluster } from '../cluster/cluster.ts'
import type { CommandResult } from '../support/command-result.ts'

const flags = (cluster: TestCluster, args: readonly string[]) => ['-n', cluster.nodes()[0]?.ip ?? '', 'upgrade-k8s', ...args]

/** Runs the command to its end. */
export const upgrade = (cluster: TestCluster, ...args: string[]): Promise<CommandResult> => cluster.talosctl(...flags(cluster, args))

/** Kills the command as soon as its report matches. */
export async function interrupted(cluster: TestCluster, at: RegExp, ...args: string[]): Promise<void> {
  const child = cluster.start(...flags(cluster, args))
  let report = ''
  const decoder = new TextDecoder()
  for await (const chunk of child.stderr) {
    report += decoder.decode(chunk, { stream: true })
    if (at.test(report)) break
  }
  child.kill('SIGKILL')
  await child.exited
  expect(report).toMatch(at)
}
