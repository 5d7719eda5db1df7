/** The node's resolver alone, on its own address, with 127.0.0.1 as upstream. */
import { Resolver } from '../../src/os/network/dns/resolver.ts'

const resolver = new Resolver()
resolver.use(['127.0.0.1'])
await resolver.listen(['127.0.0.53:53'])
console.log('ready')
