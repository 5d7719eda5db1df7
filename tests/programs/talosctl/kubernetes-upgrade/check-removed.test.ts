import { expect, test } from 'bun:test'
import { removedIn } from '../../../../src/programs/talosctl/kubernetes-upgrade/check-removed.ts'
import { removedItems } from '../../../../src/programs/talosctl/kubernetes-upgrade/removed-items.ts'

const args = (component: string, ...args: string[]) => ({ node: 'one', component, args: [`/usr/local/bin/${component}`, ...args] })

test('everything that is gone is listed in tables', () => {
  const removed = { ...removedItems[32]!, admissionPlugins: ['PodSecurityPolicy'], flags: { kubelet: ['cloud-config'] } }
  const tables = removedIn(
    removed,
    [
      args('kube-apiserver', '--enable-admission-plugins=NodeRestriction,PodSecurityPolicy', '--feature-gates=KMSv2=true,Other=true'),
      args('kube-scheduler', '--feature-gates=Other=true'),
      { ...args('kubelet', '--cloud-config=/etc/cloud'), node: 'two', featureGates: ['KMSv2'] },
    ],
    [
      { resource: removed.resources![0]!, count: 2 },
      { resource: { plural: 'others', apiVersion: 'example.org/v1', kind: 'Other' }, count: 0 },
    ],
  )
  expect(tables).toEqual([
    'NODE   COMPONENT        REMOVED ADMISSION PLUGIN\none    kube-apiserver   PodSecurityPolicy\n',
    'NODE   COMPONENT        REMOVED FEATURE GATE\none    kube-apiserver   KMSv2\ntwo    kubelet          KMSv2\n',
    'NODE   COMPONENT   REMOVED FLAG\ntwo    kubelet     cloud-config\n',
    'REMOVED RESOURCE                                  COUNT\npodschedulingcontexts.v1alpha3.resource.k8s.io   2\n'.replace(
      'RESOURCE  ',
      'RESOURCE ',
    ),
  ])
})

test.each([31, 32, 33, 34, 35, 36])('a cluster as it is created uses nothing that is gone in 1.%d', (minor) => {
  const components = [
    args('kube-apiserver', '--enable-admission-plugins=NodeRestriction', '--secure-port=6443'),
    args('kubelet', '--config=/etc/kubernetes/kubelet.yaml', '--node-ip=10.5.0.2'),
  ]
  expect(removedIn(removedItems[minor]!, components, [])).toEqual([])
})

test('a flag of one component is not taken for that of another', () => {
  expect(removedIn(removedItems[35]!, [args('kube-apiserver', '--pod-infra-container-image=x')], [])).toEqual([])
})
