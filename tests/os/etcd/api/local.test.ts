import { expect, test } from 'bun:test'
import { Store } from '../../../../src/cosi/store.ts'
import { MachineType } from '../../../../src/os/config/resources/machine-type.ts'
import { withEtcd } from '../../../../src/os/etcd/api/local.ts'

const answer = (type: 'controlplane' | 'worker') => {
  const store = new Store()
  store.put(MachineType, 'machine-type', type)
  return withEtcd(store, 'etcd member list', async () => 'reached')
}

test('a control plane node whose etcd has no certificates yet is one to call again', async () => {
  await expect(answer('controlplane')).rejects.toMatchObject({
    status: 'Unavailable',
    message: 'etcd member list: the certificates of etcd are not there yet',
  })
})

test('a worker has no etcd', async () => {
  await expect(answer('worker')).rejects.toMatchObject({ status: 'Unimplemented' })
})
