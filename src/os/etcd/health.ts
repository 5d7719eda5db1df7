import { localEtcd, type StoreReader } from './endpoints.ts'

/** Resolves when this node's etcd answers and has a majority. */
export async function etcdHealthy(store: StoreReader, signal: AbortSignal): Promise<void> {
  const client = localEtcd(store)
  try {
    await client.quorum(signal)
  } finally {
    client.close()
  }
}
