import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { type FileWriter, pemOf, renderFiles } from '../../k8s/public.ts'
import { EtcdRootSecret } from '../../secrets/resources/etcd-root-secret.ts'
import { EtcdSecret } from '../../secrets/resources/etcd-secret.ts'
import { etcdUid, secretsFolder } from '../arguments.ts'
import { PKIStatus } from '../resources/pki-status.ts'

/** Writes etcd's keys and certificates to disk. */
export const renderEtcdPki = ({ files }: { files: FileWriter }): Controller =>
  defineController({
    name: 'etcd.PKIController',
    inputs: { roots: weak(EtcdRootSecret, { id: 'etcd' }), secrets: weak(EtcdSecret, { id: 'etcd' }) },
    outputs: { status: exclusive(PKIStatus) },
    async reconcile({ roots, secrets, status }) {
      const root = roots.get('etcd')?.spec.etcdCA
      const secret = secrets.get('etcd')
      if (!root?.crt || !secret) return
      const pair = (name: string, { crt, key }: { crt?: string; key?: string } = {}) => [
        { name: `${name}.crt`, content: pemOf(crt) },
        { name: `${name}.key`, content: pemOf(key) },
      ]
      const { etcd, etcdPeer, etcdAdmin } = secret.spec
      await renderFiles(files, secretsFolder, etcdUid, [
        { name: 'ca.crt', content: pemOf(root.crt) },
        ...pair('server', etcd),
        ...pair('peer', etcdPeer),
        ...pair('admin', etcdAdmin),
      ])
      status.put('etcd', { ready: true, version: String(secret.metadata.version) })
    },
  })
