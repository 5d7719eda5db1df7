/** What other areas may use of this one besides its resources and documents. */

// An upgrade checks the quorum by member ids.
export { type EtcdClient, hexId, type Member, memberIdOf } from './client.ts'
// An upgrade holds the cluster's claim and queries the other members.
export { etcdClientOf, localEtcd } from './endpoints.ts'
// A reset leaves the cluster of etcd.
export { etcdLeave } from './leave.ts'
// Explanations state how many members are missing.
export { majorityOf } from './majority.ts'
// Explanations show the members as each of them sees the cluster.
export { type EtcdView, viewEtcd } from './view.ts'
