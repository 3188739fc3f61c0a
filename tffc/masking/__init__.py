"""Sums whose parts the server cannot see: pairwise masks, as in Bonawitz et al., "Practical Secure
Aggregation for Privacy-Preserving Machine Learning", CCS 2017 (https://eprint.iacr.org/2017/281).

Every two participants agree on a mask that one adds and the other subtracts, so that all masks
vanish from the sum of all vectors; and each adds a mask of its own, so that a vector that comes
late, when its pairwise masks are known already, still shows nothing.  Seeds of masks are shared
among the participants, so that any `threshold` of them can take out the masks of those who dropped
out:

    keys       a participant sends two public keys; the server sends all of them to everyone
    shares     it splits its secrets, and seals one share of each for every other participant
    masked     it sends its vector under masks; those whose vector arrived are the survivors
    confirmed  it signs who survived, so that all hear of the same survivors
    revealed   it gives its shares: of a survivor's own seed, or of a dropped one's secret key

`Participant` is one side of it, `Aggregator` the other; neither knows how messages travel.  This
room imports `cryptography`, which comes with the extra `tffc[masking]`.
"""
