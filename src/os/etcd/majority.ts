/** How many of so many members a leader needs. */
export const majorityOf = (members: number): number => Math.floor(members / 2) + 1
