"""Sums whose parts the server cannot see: pairwise masks, as in Bonawitz et al., "Practical Secure
Aggregation for Privacy-Preserving Machine Learning", CCS 2017 (https://eprint.iacr.org/2017/281).

Every two participants agree on a mask that one adds and the other subtracts, so that these masks
cancel in the sum of all vectors.  Each also adds a mask of its own, so that a vector that arrives
late, when its pairwise masks are known already, still shows nothing.  The secrets behind the masks
are shared among the participants, so that any `threshold` of them can remove the masks that remain
in the sum:

    keys       a participant sends two public keys; the server sends all of them to everyone
    shares     it splits its secrets, and seals one share of each for every other participant
    masked     it sends its vector under masks; those whose vector arrived are the survivors
    confirmed  it signs who survived, so that all agree on the survivors
    revealed   it sends its shares of each survivor's own seed, or dropped participant's secret key

`Participant` and `Aggregator` are the two sides; neither knows how messages travel.  This
package imports `cryptography`, which comes with the extra `tffc[masking]`.
"""
