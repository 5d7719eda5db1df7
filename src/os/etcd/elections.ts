import type { Elect } from '../area.ts'
import { localEtcd, type StoreReader } from './endpoints.ts'

/** Elections through this machine's own member, so that a member without quorum elects nobody. */
export const electIn =
  (store: StoreReader): Elect =>
  async (name, act, signal) => {
    const etcd = localEtcd(store)
    try {
      await etcd.withMutex(name, act, signal)
    } finally {
      etcd.close()
    }
  }
