import { runProgram } from '../../../supervise/run-program.ts'
import type { Machine } from '../../area.ts'
import { dataFolder } from '../arguments.ts'
import { etcdAt, otherEtcd } from '../endpoints.ts'
import { Repair } from './repair.ts'
import { verificationOf } from './verdict.ts'

/** Milliseconds: gigabytes are read from a slow disk. */
const readTimeout = 15 * 60_000

/** The repairs of a machine's etcd member. */
export function repairOf({ store, kernel, clock, log, spawn, events }: Machine): Repair {
  return new Repair({
    store,
    files: kernel.files,
    clock,
    log,
    others: () => otherEtcd(store),
    at: (member) => etcdAt(store, member),
    verify: async (signal) =>
      verificationOf(
        await runProgram({ spawn }, ['/usr/bin/etcd-verify', dataFolder], { timeout: readTimeout, signal, purpose: 'verify etcd' }),
      ),
    publish: (event) => events.publish('ichor.v1.EtcdRepairEvent', event),
  })
}
