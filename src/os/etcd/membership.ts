import type { SpecOf } from '../../cosi/resource.ts'
import { runProgram } from '../../supervise/run-program.ts'
import type { Machine } from '../area.ts'
import type { Bootstrap } from './bootstrap.ts'
import { etcdHealthy } from './health.ts'
import { prepareEtcd } from './prepare.ts'
import type { EtcdSpec } from './resources/etcd-spec.ts'

/** Milliseconds: a snapshot of several gigabytes is restored on a slow disk. */
const restoreTimeout = 15 * 60_000

/** What the service provides while it prepares. */
export interface Preparing {
  signal: AbortSignal
  bootstrap: Bootstrap
  note(message: string): void
  /** See `EtcdPreparation.putAside`. */
  putAside(): Promise<boolean>
}

/**
 * etcd's command line after its name, as soon as this node knows how to start: with its data, as the first member of a cluster,
 * or as one that joins. Waits until one of these is the case.
 */
export async function etcdArguments(
  { store, kernel, log, spawn }: Pick<Machine, 'store' | 'kernel' | 'log' | 'spawn'>,
  spec: SpecOf<typeof EtcdSpec>,
  { note, signal, bootstrap, putAside }: Preparing,
): Promise<string[]> {
  const run = async (args: string[]) => void (await etcdutl({ spawn }, args, signal))
  return prepareEtcd({ store, spec, files: kernel.files, log, signal, bootstrap, note, putAside, etcdutl: run })
}

/** Runs `etcdutl` of the image and resolves to its output. */
export function etcdutl({ spawn }: Pick<Machine, 'spawn'>, args: readonly string[], signal: AbortSignal): Promise<string> {
  const purpose = `etcdutl ${args.slice(0, 2).join(' ')}`
  return runProgram({ spawn }, ['/usr/bin/etcdutl', ...args], { timeout: restoreTimeout, signal, purpose })
}

/** Resolves when this node's etcd answers and has a majority. */
export const etcdHealth = ({ store }: Pick<Machine, 'store'>, signal: AbortSignal): Promise<void> => etcdHealthy(store, signal)
